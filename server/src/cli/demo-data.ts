import type { TraceInput } from '../core/trace-fields.ts';

/** A first trace to send. It holds no quote, so that it can be pasted into a shell. */
export const exampleTrace: TraceInput = {
  model: 'gpt-4o',
  input: 'Hello!',
  output: 'Hi, how can I help?',
  prompt_tokens: 9,
  completion_tokens: 7,
  latency_ms: 840,
  cost_usd: 0.0015,
  feature_name: 'chat',
};

// Made-up AI calls that look like a product's: a few models, providers, environments and features, long tails, some errors.

interface Provider {
  name: string;
  /** What a cached token costs, as a share of the price of another one. */
  readShare: number;
  /** Null if the provider does not report what it writes to its cache. */
  writeShare: number | null;
}

const openai: Provider = { name: 'openai', readShare: 0.5, writeShare: null };
const azure: Provider = { ...openai, name: 'azure' };
const anthropic: Provider = { name: 'anthropic', readShare: 0.1, writeShare: 1.25 };
const google: Provider = { name: 'google', readShare: 0.25, writeShare: null };

interface Model {
  name: string;
  /** What the provider answers with, if it differs. */
  exactName?: string;
  provider: Provider;
  weight: number;
  /** US dollars per million tokens. */
  priceIn: number;
  priceOut: number;
  msPerToken: number;
  isReasoning?: true;
}

const gpt4o = { name: 'gpt-4o', exactName: 'gpt-4o-2024-08-06', priceIn: 2.5, priceOut: 10 };
const mini = { name: 'gpt-4o-mini', exactName: 'gpt-4o-mini-2024-07-18' };
const sonnet = { name: 'claude-sonnet-4', exactName: 'claude-sonnet-4-20250514' };
const gemini = { name: 'gemini-2.5-pro', isReasoning: true as const };
const models = weighted<Model>([
  { ...mini, provider: openai, weight: 38, priceIn: 0.15, priceOut: 0.6, msPerToken: 6 },
  { ...gpt4o, provider: openai, weight: 18, msPerToken: 12 },
  { ...gpt4o, provider: azure, weight: 6, msPerToken: 11 },
  { ...sonnet, provider: anthropic, weight: 18, priceIn: 3, priceOut: 15, msPerToken: 14 },
  {
    name: 'claude-haiku-3.5',
    provider: anthropic,
    weight: 12,
    priceIn: 0.8,
    priceOut: 4,
    msPerToken: 7,
  },
  { ...gemini, provider: google, weight: 8, priceIn: 1.25, priceOut: 10, msPerToken: 11 },
]);

/** Calls of a conversation have a session, calls of an agent a run. */
interface Feature {
  name: string | null;
  weight: number;
  tokensIn: number;
  tokensOut: number;
  kind?: 'conversation' | 'agent';
}

const features = weighted<Feature>([
  { name: 'chat', weight: 45, tokensIn: 650, tokensOut: 180, kind: 'conversation' },
  { name: 'search', weight: 20, tokensIn: 900, tokensOut: 60 },
  { name: 'summarize', weight: 15, tokensIn: 2400, tokensOut: 220 },
  { name: 'classify', weight: 10, tokensIn: 140, tokensOut: 5 },
  { name: 'code-review', weight: 5, tokensIn: 3800, tokensOut: 520, kind: 'agent' },
  { name: null, weight: 5, tokensIn: 200, tokensOut: 100 },
]);

const environments = weighted([
  { name: 'production', weight: 80 },
  { name: 'staging', weight: 14 },
  { name: 'development', weight: 6 },
]);

const errorShare = 0.018;
const errors = [
  { type: 'rate_limit', message: '429 rate limit reached' },
  { type: 'overloaded', message: '503 the model is overloaded' },
  { type: 'timeout', message: 'timeout after 30 s' },
  { type: 'invalid_request', message: '400 the context is too long' },
];
const questions = [
  'How do I change the billing address of my account?',
  'Summarize the attached report in five sentences for a busy reader.',
  'Which of these tickets should be answered first, and why?',
  'Write a polite reply that declines the offer but keeps the door open.',
  'Explain the difference between the two plans in a short table.',
  'Find the mistake in this function and suggest a fix.',
];
const sentences = [
  'Open the settings, choose Billing, and press Edit beside the address.',
  'The second quarter closed above plan, mostly because of the new region.',
  'The first ticket blocks a release, so it should come before the others.',
  'Thank you for the thoughtful offer; at this time we will stay with our present supplier.',
  'The team plan adds roles and an audit log; the personal plan does not have them.',
  'The loop ends one step early, so the last element is never read.',
  'Let me know if you would like more detail on any of these points.',
];
const versions = ['4.1.0', '4.1.2', '4.2.0'];
const regions = ['eu', 'us'];

type Random = () => number;

/** The same seed gives the same traces. They have no time. */
export function* demoTraces(count: number, seed: number): Generator<TraceInput> {
  const random = seededRandom(seed);
  const conversations = new Threads('session', 40, 0.75);
  const agents = new Threads('run', 5, 0.85);
  for (let i = 0; i < count; i++) {
    const feature = oneOf(features, random);
    const isConversation = feature.kind === 'conversation';
    const session = isConversation ? conversations.next(random) : null;
    const run = feature.kind === 'agent' ? agents.next(random) : null;
    yield {
      ...demoCall(feature, random),
      user_identifier: (session ?? run)?.user ?? anyUser(random),
      session_id: session?.id ?? null,
      run_id: run?.id ?? null,
    };
  }
}

function demoCall(feature: Feature, random: Random): TraceInput {
  const model = oneOf(models, random);
  const error = random() < errorShare ? oneOf(errors, random) : null;
  const tokens = demoTokens(model, feature, error !== null, random);
  const firstTokenMs = 180 + longTail(120, random);
  const isStreamed = feature.kind === 'conversation' && error === null;
  return {
    model: model.name,
    input: oneOf(questions, random),
    output: error === null ? answer(random) : null,
    ...tokens,
    latency_ms: Math.round(firstTokenMs + (tokens.completion_tokens ?? 0) * model.msPerToken),
    cost_usd: costOf(model, tokens),
    status: error === null ? 'success' : 'error',
    error_message: error?.message ?? null,
    feature_name: feature.name,
    response_model: error === null ? (model.exactName ?? null) : null,
    environment: oneOf(environments, random).name,
    provider: model.provider.name,
    ttft_ms: isStreamed ? firstTokenMs : null,
    error_type: error?.type ?? null,
    metadata: { version: oneOf(versions, random), region: oneOf(regions, random) },
  };
}

type Tokens = Pick<
  TraceInput,
  | 'prompt_tokens'
  | 'completion_tokens'
  | 'cache_read_tokens'
  | 'cache_write_tokens'
  | 'reasoning_tokens'
>;

/** Providers cache the beginning of prompts of at least 1,024 tokens, in whole blocks. */
const cachedTokensMin = 1_024;
const cacheBlockTokens = 128;
const cacheHitShare = 0.7;

function demoTokens(model: Model, feature: Feature, isError: boolean, random: Random): Tokens {
  const prompt = longTail(feature.tokensIn, random);
  const completion = isError ? 0 : longTail(feature.tokensOut, random);
  const beginning = Math.floor((prompt * 0.8) / cacheBlockTokens) * cacheBlockTokens;
  const cacheable = prompt >= cachedTokensMin && !isError ? beginning : 0;
  const isHit = random() < cacheHitShare;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    cache_read_tokens: isHit ? cacheable : 0,
    cache_write_tokens: model.provider.writeShare === null ? null : isHit ? 0 : cacheable,
    reasoning_tokens: model.isReasoning ? Math.floor(completion * (0.3 + random() * 0.5)) : null,
  };
}

function costOf({ priceIn, priceOut, provider }: Model, tokens: Tokens): number {
  const read = tokens.cache_read_tokens ?? 0;
  const written = tokens.cache_write_tokens ?? 0;
  const plain = (tokens.prompt_tokens ?? 0) - read - written;
  const input = plain + read * provider.readShare + written * (provider.writeShare ?? 1);
  const usd = (input * priceIn + (tokens.completion_tokens ?? 0) * priceOut) / 1e6;
  return Number(usd.toFixed(8));
}

function answer(random: Random): string {
  const count = 1 + Math.floor(random() * 4);
  return Array.from({ length: count }, () => oneOf(sentences, random)).join(' ');
}

/** Squared, so that a few users make most of the calls. */
function anyUser(random: Random): string {
  return `user-${Math.floor(random() ** 2 * 800) + 1}`;
}

interface Thread {
  id: string;
  user: string;
}

/** Conversations or runs: a call continues one of those that are open, or begins another one, which replaces one of them. */
class Threads {
  readonly #name: string;
  readonly #openMax: number;
  readonly #continuedShare: number;
  readonly #open: Thread[] = [];
  #count = 0;

  constructor(name: string, openMax: number, continuedShare: number) {
    this.#name = name;
    this.#openMax = openMax;
    this.#continuedShare = continuedShare;
  }

  next(random: Random): Thread {
    const isContinued = this.#open.length > 0 && random() < this.#continuedShare;
    if (isContinued) return oneOf(this.#open, random);
    this.#count += 1;
    const thread = { id: `${this.#name}-${this.#count}`, user: anyUser(random) };
    const at = this.#open.length < this.#openMax ? this.#open.length : null;
    this.#open[at ?? Math.floor(random() * this.#openMax)] = thread;
    return thread;
  }
}

/** Mostly near the middle, seldom far above it. */
function longTail(middle: number, random: Random): number {
  return Math.max(1, Math.round(middle * Math.exp((random() + random() + random() - 1.5) * 1.2)));
}

/** Each choice as often as its weight says. */
function weighted<T extends { weight: number }>(choices: readonly T[]): T[] {
  return choices.flatMap((choice) => Array.from({ length: choice.weight }, () => choice));
}

function oneOf<T>(choices: readonly T[], random: Random): T {
  return choices[Math.floor(random() * choices.length)] as T;
}

/** A small linear congruential generator (Numerical Recipes' constants): enough for demo data. */
function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
