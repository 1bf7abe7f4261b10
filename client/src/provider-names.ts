/** The names of providers by their hosts, as OpenTelemetry writes them. The server finds prices by them. */
const byHost: Readonly<Record<string, string>> = {
  'api.openai.com': 'openai',
  'api.anthropic.com': 'anthropic',
  'openai.azure.com': 'azure.ai.openai',
  'api.groq.com': 'groq',
  'openrouter.ai': 'openrouter',
  'api.deepseek.com': 'deepseek',
  'api.mistral.ai': 'mistral_ai',
  'api.x.ai': 'x_ai',
  'api.perplexity.ai': 'perplexity',
  'api.cerebras.ai': 'cerebras',
  'api.together.xyz': 'together',
  'api.fireworks.ai': 'fireworks',
  'generativelanguage.googleapis.com': 'gcp.gemini',
  'amazonaws.com': 'aws.bedrock',
};

/** The provider that a client calls, or the usual one of its SDK if the host says nothing. */
export function providerOf(client: object, usual: string): string {
  const { baseURL } = client as { baseURL?: unknown };
  const host = typeof baseURL === 'string' ? hostOf(baseURL) : '';
  const known = Object.keys(byHost).find((name) => host === name || host.endsWith(`.${name}`));
  return known === undefined ? usual : (byHost[known] ?? usual);
}

function hostOf(url: string): string {
  try {
    return new URL(url).hostname;
  } catch {
    return '';
  }
}
