/** Without the client: traces are plain JSON, which any language can send. */
const { TRACETALLY_URL: url = 'http://127.0.0.1:4000', TRACETALLY_API_KEY: key = '' } = process.env;

const traces = ['first', 'second', 'third'].map((input) => ({
  model: 'gpt-4o',
  input,
  output: input.toUpperCase(),
  prompt_tokens: 9,
  completion_tokens: 7,
  latency_ms: 840,
  cost_usd: 0.0015,
  feature_name: 'example-fetch-batch',
}));

const response = await fetch(`${url}/traces/batch?omit=input,output`, {
  method: 'POST',
  headers: {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    // If the request is sent again with the same key, the traces are stored once.
    'idempotency-key': crypto.randomUUID(),
  },
  body: JSON.stringify({ traces }),
});
if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
const reply = (await response.json()) as { traces: { id: string }[]; rejected: unknown[] };
process.stdout.write(`${reply.traces.length} stored, ${reply.rejected.length} rejected\n`);
