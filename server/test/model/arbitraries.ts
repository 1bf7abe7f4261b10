import fc from 'fast-check';
import type { Sent } from './team-model.ts';

/** Any string at all, lone surrogates and U+0000 included. */
const anyText = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 0x7f }), fc.integer({ min: 0, max: 0xffff })), {
    maxLength: 40,
  })
  .map((units) => String.fromCharCode(...units));

/** Text that compresses, long enough to be compressed. */
const longText = fc
  .tuple(anyText, fc.integer({ min: 0, max: 300 }))
  .map(([text, times]) => text.repeat(times));

const controlCharacters = /\p{Cc}/gu;
const anyLabel = anyText
  .map((text) => text.replaceAll(controlCharacters, '.'))
  .filter((text) => text !== '');
const label = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      'gpt-4o',
      'claude',
      'chat',
      'search',
      'Ärger',
      '__proto__',
      "'; --",
      '😀',
      '\uFFFD',
    ),
  },
  { weight: 1, arbitrary: anyLabel },
  { weight: 1, arbitrary: fc.constantFrom('x'.repeat(255), '😀'.repeat(255)) },
);

const count = fc.oneof(
  fc.integer({ min: 0, max: 5000 }),
  fc.constantFrom(0, 1, 2 ** 31 - 2, 2 ** 31 - 1),
);

export const cost = fc.oneof(
  fc.double({ min: 0, max: 1_000_000, noNaN: true }).map((usd) => usd + 0),
  fc
    .tuple(fc.integer({ min: 0, max: 999_999 }), fc.integer({ min: 0, max: 12 }))
    .map(([n, places]) => n / 10 ** places),
  fc.constantFrom(
    0,
    5e-324,
    1e-7,
    4.9e-13,
    5e-13,
    0.0000005,
    0.0000015,
    0.1,
    0.2,
    999_999.999999,
    1_000_000,
  ),
);

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null, freq: 3 });

const midnightUs = Date.UTC(2026, 2, 1) * 1000;
const dayUs = 86_400_000_000;

/** Times before every `moment` and some days earlier, since a call cannot begin more than a day ahead of the clock; with any offset. */
const startTime = fc
  .tuple(
    fc.integer({ min: midnightUs - 20 * dayUs, max: midnightUs - 10 * dayUs }),
    fc.constantFrom('+00:00', '-11:30', '+05:45', '+14:00'),
  )
  .map(([us, offset]) =>
    Temporal.Instant.fromEpochNanoseconds(BigInt(us) * 1000n)
      .toZonedDateTimeISO(offset)
      .toString({ timeZoneName: 'never' }),
  );

const metadata = fc.dictionary(
  anyLabel.map((name) => name.slice(0, 64).toWellFormed()),
  fc.oneof(anyText, fc.constant('v'.repeat(255))),
  { maxKeys: 16 },
);

const anyTrace: fc.Arbitrary<Sent> = fc.record(
  {
    model: label,
    input: optional(fc.oneof(anyText, longText)),
    output: optional(fc.oneof(anyText, longText)),
    prompt_tokens: optional(count),
    completion_tokens: optional(count),
    latency_ms: optional(count),
    cost_usd: optional(cost),
    status: optional(fc.constantFrom('success' as const, 'error' as const)),
    error_message: optional(anyText),
    feature_name: optional(label),
    user_identifier: optional(label),
    response_model: optional(label),
    started_at: optional(startTime),
    environment: optional(label),
    provider: optional(label),
    session_id: optional(label),
    run_id: optional(label),
    cache_read_tokens: optional(count),
    cache_write_tokens: optional(count),
    reasoning_tokens: optional(count),
    ttft_ms: optional(count),
    error_type: optional(label),
    metadata: optional(metadata),
  },
  { requiredKeys: ['model'] },
);

export const sentTrace = anyTrace.map((trace): Sent => {
  const fit = { ...trace };
  lower(fit, 'cache_read_tokens', trace.prompt_tokens, 0);
  lower(fit, 'cache_write_tokens', trace.prompt_tokens, fit.cache_read_tokens);
  lower(fit, 'reasoning_tokens', trace.completion_tokens, 0);
  return fit;
});

/** Lowers a part of a count to what the other part leaves of it. */
function lower(
  trace: Sent,
  part: 'cache_read_tokens' | 'cache_write_tokens' | 'reasoning_tokens',
  whole: number | null | undefined,
  otherPart: number | null | undefined,
): void {
  const value = trace[part];
  if (typeof value !== 'number' || typeof whole !== 'number') return;
  trace[part] = Math.min(value, whole - (otherPart ?? 0));
}

/** Few names, so that they meet. */
export const maybeIdempotencyKey = fc.option(fc.constantFrom('k1', 'k2', '~'.repeat(255)), {
  nil: null,
});

export interface InvalidItem {
  item: unknown;
  errors: readonly { field: string; message: string }[];
}

/** An item of a batch that is not a trace, and the error for it. */
export const invalidItem: fc.Arbitrary<InvalidItem> = fc.constantFrom<InvalidItem[]>(
  { item: null, errors: [{ field: 'trace', message: 'must be a JSON object' }] },
  { item: ['m'], errors: [{ field: 'trace', message: 'must be a JSON object' }] },
  { item: {}, errors: [{ field: 'model', message: 'is required' }] },
  { item: { model: '' }, errors: [{ field: 'model', message: 'must not be empty' }] },
  {
    item: { model: 'm', latency_ms: '7', input: 7 },
    errors: [
      { field: 'input', message: 'must be a string or null' },
      { field: 'latency_ms', message: 'must be an integer or null' },
    ],
  },
  {
    item: {
      model: 'm',
      completion_tokens: 1,
      reasoning_tokens: 2,
      started_at: '1999-12-31T23:59:59Z',
      metadata: { name: 1 },
    },
    errors: [
      { field: 'started_at', message: 'must not be before 2000-01-01' },
      { field: 'reasoning_tokens', message: 'must not be more than completion_tokens' },
      { field: 'metadata', message: 'must have only strings as values' },
    ],
  },
);

/** Moments around midnights of a fortnight, to the microsecond, in any order: clocks do jump. */
export const moment = fc
  .tuple(
    fc.integer({ min: -10, max: 3 }),
    fc.oneof(
      fc.constantFrom(-1, 0, 1, -1000, 999, -5_000_000, 5_000_001),
      fc.integer({ min: -dayUs, max: dayUs }),
    ),
  )
  .map(([days, offset]) => midnightUs + days * dayUs + offset);
