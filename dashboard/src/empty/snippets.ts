import { flagWord, inShell } from '../format/shell.ts';

/** The page has no key to show, so the snippets read it from this variable, as the client does. */
const keyVariable = 'TRACETALLY_API_KEY';

/** Creates a key that may record, and puts it into the environment. The command prints nothing but the key to standard output. */
export function keySnippet(team: string): string {
  const create = `npm run -s tracetally -- keys create ${flagWord('team', team)} --scope ingest`;
  return `export ${keyVariable}="$(${create})"`;
}

/** Records a first trace. The URL has no slash at its end. */
export function curlSnippet(baseUrl: string): string {
  const trace = {
    model: 'gpt-4o',
    input: 'Hello!',
    output: 'Hi, how can I help?',
    prompt_tokens: 9,
    completion_tokens: 7,
    latency_ms: 840,
    cost_usd: 0.0015,
    feature_name: 'chat',
  };
  return [
    `curl -sS ${inShell(`${baseUrl}/traces`)} \\`,
    // In double quotes, so that the shell inserts the key.
    `  -H "Authorization: Bearer $${keyVariable}" \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${inShell(JSON.stringify(trace, null, 2).replace(/^\s+/gm, '    ').replace(/\}$/, '  }'))}`,
  ].join('\n');
}

export function clientSnippet(baseUrl: string): string {
  return [
    `import { TraceTally } from '@tracetally/client';`,
    `import OpenAI from 'openai';`,
    '',
    `// Reads the key from ${keyVariable}.`,
    `const tally = new TraceTally({ baseUrl: ${inScript(baseUrl)} });`,
    '',
    `// Records every call of this client with its tokens, latency and cost.`,
    `const openai = tally.wrapOpenAI(new OpenAI(), { feature: 'chat' });`,
    '',
    `// For any other model, record the call yourself:`,
    `await tally.record({ model: 'my-model', input: 'Hello!', output: 'Hi!', latency_ms: 840 });`,
  ].join('\n');
}

function inScript(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
