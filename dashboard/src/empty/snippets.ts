/** The page has no key to show, so the snippets take it from here. The client reads the same variable. */
export const keyVariable = 'TRACETALLY_API_KEY';

/** What a first trace takes, ready to be pasted. The URL has no slash at its end. */
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
    // In double quotes, so that the shell puts the key in.
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
    `// The key comes from the variable ${keyVariable}.`,
    `const tally = new TraceTally({ baseUrl: ${inScript(baseUrl)} });`,
    '',
    `// Every call of this client is recorded, with its tokens, latency and cost.`,
    `const openai = tally.wrapOpenAI(new OpenAI(), { feature: 'chat' });`,
    '',
    `// Or by hand, for any other model:`,
    `await tally.record({ model: 'my-model', input: 'Hello!', output: 'Hi!', latency_ms: 840 });`,
  ].join('\n');
}

/** In single quotes nothing has a meaning but the quote itself. */
function inShell(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function inScript(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
