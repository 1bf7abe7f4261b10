// Written by `npm run client-types` from server/src/core/prices; edits are lost.

/**
 * Names of providers and models that other tools use, and what the price list calls them. What the list understands by itself, such as
 * dates in names, is not repeated here.
 */

/**
 * Names in lower case. Null says nothing about who sells the model, so the name of the model decides. Providers that are in neither this
 * table nor the list, such as `ollama`, have no prices.
 */
const providers: Readonly<Record<string, string | null>> = {
  // OpenTelemetry: gen_ai.provider.name, and the older gen_ai.system.
  'azure.ai.openai': 'azure',
  'azure.ai.inference': 'azure',
  'az.ai.openai': 'azure',
  'az.ai.inference': 'azure',
  'aws.bedrock': 'aws',
  'gcp.gen_ai': 'google',
  'gcp.gemini': 'google',
  'gcp.vertex_ai': 'google',
  x_ai: 'x-ai',
  mistral_ai: 'mistral',
  moonshot_ai: 'moonshotai',
  _other: null,
  // OpenInference, LangChain, LlamaIndex, the AI SDK.
  azure_openai: 'azure',
  'azure-openai': 'azure',
  'azure-chat-openai': 'azure',
  amazon_bedrock: 'aws',
  google_genai: 'google',
  'google-genai': 'google',
  google_vertexai: 'google',
  'google-vertex': 'google',
  vertexai: 'google',
  'vertex.anthropic': 'google',
  'google.vertex.anthropic': 'google',
  togetherai: 'together',
  'together.ai': 'together',
  'fireworks-ai': 'fireworks',
  langchain: null,
  llamaindex: null,
  llama_index: null,
  // LiteLLM.
  azure_ai: 'azure',
  azure_text: 'azure',
  bedrock_converse: 'aws',
  vertex_ai: 'google',
  'vertex_ai-anthropic_models': 'google',
  vertex_ai_beta: 'google',
  fireworks_ai: 'fireworks',
  litellm_proxy: null,
  litellm: null,
};

/** They contain the name of a provider of the list, but run models elsewhere. */
const unlisted: ReadonlySet<string> = new Set([
  'openai_like',
  'custom_openai',
  'openai-compatible',
]);

/** Returns what the price list calls a provider. Undefined if it is not in the list. */
export type FindProvider = (name: string) => string | undefined;

/** What the price list calls a provider; null if the model decides. Undefined if it has no prices. */
export function listedProvider(
  name: string | null,
  findProvider: FindProvider,
): string | null | undefined {
  if (name === null) return null;
  const plain = name.toLowerCase().trim();
  if (unlisted.has(plain)) return undefined;
  const alias = Object.hasOwn(providers, plain) ? providers[plain] : plain;
  return alias === null || alias === undefined ? null : findProvider(alias);
}

/** A pair to look for in the price list. */
export interface Candidate {
  provider: string | null;
  model: string;
}

/** `models/gemini-2.5-pro`, `publishers/google/models/…`, `projects/…/locations/…/models/…` */
const resourcePath = /^(?:(?:projects|publishers)\/.*\/)?models\//;

/** `bedrock/converse/us-east-1/anthropic.claude-…` */
const bedrockRoute = /^(?:(?:converse|invoke)\/)?(?:[a-z]{2}(?:-[a-z]+)+-\d\/)?/;

/** What to look for, in this order. The first one that the list has is the price. Empty if the provider has no prices. */
export function candidates(
  provider: string | null,
  model: string,
  findProvider: FindProvider,
): Candidate[] {
  const seller = listedProvider(provider, findProvider);
  if (seller === undefined) return [];
  const found: Candidate[] = [{ provider: seller, model }];
  const withoutPath = model.replace(resourcePath, '');
  if (withoutPath !== model) found.push({ provider: seller ?? 'google', model: withoutPath });
  const split = splitRoute(seller, model, findProvider);
  if (split !== null) found.push(split);
  return found;
}

/** A gateway's `provider/model`. Another seller's name for a model, such as that of OpenRouter, is not that provider's price. */
function splitRoute(
  seller: string | null,
  model: string,
  findProvider: FindProvider,
): Candidate | null {
  const at = model.indexOf('/');
  if (at <= 0) return null;
  const named = listedProvider(model.slice(0, at), findProvider) ?? null;
  if (named === null || (seller !== null && seller !== named)) return null;
  const rest = model.slice(at + 1);
  return { provider: named, model: named === 'aws' ? rest.replace(bedrockRoute, '') : rest };
}
