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

export const sentTrace: fc.Arbitrary<Sent> = fc.record(
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
  },
  { requiredKeys: ['model'] },
);

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
);

const midnightUs = Date.UTC(2026, 2, 1) * 1000;
const dayUs = 86_400_000_000;

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
