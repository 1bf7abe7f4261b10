/** What a first trace takes, ready to be pasted. */
export interface SnippetSettings {
  /** Without a slash at its end. */
  baseUrl: string;
  /** Null where the page does not show it. */
  key: string | null;
}

const unknownKey = 'tt_YOUR_KEY';

export function curlSnippet({ baseUrl, key }: SnippetSettings): string {
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
    `  -H ${inShell(`Authorization: Bearer ${key ?? unknownKey}`)} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${inShell(JSON.stringify(trace, null, 2).replace(/^\s+/gm, '    ').replace(/\}$/, '  }'))}`,
  ].join('\n');
}

export function clientSnippet({ baseUrl, key }: SnippetSettings): string {
  return [
    `import { TraceTally } from '@tracetally/client';`,
    `import OpenAI from 'openai';`,
    '',
    'const tally = new TraceTally({',
    `  baseUrl: ${inScript(baseUrl)},`,
    `  apiKey: ${inScript(key ?? unknownKey)},`,
    '});',
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
