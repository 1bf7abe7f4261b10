import type { TraceDraft, TraceInput } from '../core/trace-fields.ts';
import { draftTrace } from '../core/trace.ts';

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

// Made-up AI calls that look like a product's: a few models, a few features, long tails, some errors.

/** Prices are in US dollars per million tokens. */
const models = weighted([
  { name: 'gpt-4o-mini', weight: 40, priceIn: 0.15, priceOut: 0.6, msPerToken: 6 },
  { name: 'gpt-4o', weight: 22, priceIn: 2.5, priceOut: 10, msPerToken: 12 },
  { name: 'claude-sonnet-4', weight: 18, priceIn: 3, priceOut: 15, msPerToken: 14 },
  { name: 'claude-haiku-3.5', weight: 12, priceIn: 0.8, priceOut: 4, msPerToken: 7 },
  { name: 'gemini-2.5-pro', weight: 8, priceIn: 1.25, priceOut: 10, msPerToken: 11 },
]);

const features = weighted([
  { name: 'chat', weight: 45, tokensIn: 350, tokensOut: 180 },
  { name: 'search', weight: 20, tokensIn: 900, tokensOut: 60 },
  { name: 'summarize', weight: 15, tokensIn: 2400, tokensOut: 220 },
  { name: 'classify', weight: 10, tokensIn: 140, tokensOut: 5 },
  { name: 'code-review', weight: 5, tokensIn: 3800, tokensOut: 520 },
  { name: null, weight: 5, tokensIn: 200, tokensOut: 100 },
]);

const errorShare = 0.018;
const errors = [
  '429 rate limit reached',
  '503 the model is overloaded',
  'timeout after 30 s',
  '400 the context is too long',
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

/** The same seed gives the same drafts. */
export function* demoDrafts(count: number, seed: number): Generator<TraceDraft> {
  const random = seededRandom(seed);
  for (let i = 0; i < count; i++) yield demoDraft(random);
}

function demoDraft(random: () => number): TraceDraft {
  const model = oneOf(models, random);
  const feature = oneOf(features, random);
  const failed = random() < errorShare;
  const tokensIn = longTail(feature.tokensIn, random);
  const tokensOut = failed ? 0 : longTail(feature.tokensOut, random);
  const usd = (tokensIn * model.priceIn + tokensOut * model.priceOut) / 1e6;
  return draftTrace({
    model: model.name,
    input: oneOf(questions, random),
    output: failed ? null : answer(random),
    prompt_tokens: tokensIn,
    completion_tokens: tokensOut,
    latency_ms: Math.round(180 + longTail(120, random) + tokensOut * model.msPerToken),
    cost_usd: Number(usd.toFixed(8)),
    status: failed ? 'error' : 'success',
    error_message: failed ? oneOf(errors, random) : null,
    feature_name: feature.name,
    // Squared, so that a few users make most of the calls.
    user_identifier: `user-${Math.floor(random() ** 2 * 800) + 1}`,
  });
}

function answer(random: () => number): string {
  const count = 1 + Math.floor(random() * 4);
  return Array.from({ length: count }, () => oneOf(sentences, random)).join(' ');
}

/** How busy each hour of a UTC day is. */
const hourWeights = [
  2, 1, 1, 1, 1, 2, 4, 7, 10, 12, 12, 11, 9, 11, 12, 12, 11, 9, 7, 6, 5, 4, 3, 3,
];
const hourUs = 3_600_000_000;

/** Ascending times between two moments, with more of them by day than by night. */
export function* demoTimes(count: number, fromUs: number, toUs: number): Generator<number> {
  const hours = hoursBetween(fromUs, Math.max(fromUs + 1, toUs));
  const total = hours.reduce((sum, { weight }) => sum + weight, 0);
  let passed = 0;
  let made = 0;
  for (const { startUs, endUs, weight } of hours) {
    passed += weight;
    const due = Math.round((passed / total) * count) - made;
    for (let i = 0; i < due; i++) yield Math.floor(startUs + ((i + 0.5) / due) * (endUs - startUs));
    made += due;
  }
}

/** The first and the last may be parts of an hour. */
function hoursBetween(fromUs: number, toUs: number) {
  const firstHour = Math.floor(fromUs / hourUs);
  return Array.from({ length: Math.ceil(toUs / hourUs) - firstHour }, (_, i) => {
    const hour = firstHour + i;
    const startUs = Math.max(fromUs, hour * hourUs);
    const endUs = Math.min(toUs, (hour + 1) * hourUs);
    return { startUs, endUs, weight: (hourWeights[hour % 24] ?? 1) * (endUs - startUs) };
  });
}

/** Mostly near the middle, seldom far above it. */
function longTail(middle: number, random: () => number): number {
  return Math.max(1, Math.round(middle * Math.exp((random() + random() + random() - 1.5) * 1.2)));
}

/** Each choice as often as its weight says. */
function weighted<T extends { weight: number }>(choices: readonly T[]): T[] {
  return choices.flatMap((choice) => Array.from({ length: choice.weight }, () => choice));
}

function oneOf<T>(choices: readonly T[], random: () => number): T {
  return choices[Math.floor(random() * choices.length)] as T;
}

/** A small linear congruential generator (Numerical Recipes' constants): enough for demo data. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
