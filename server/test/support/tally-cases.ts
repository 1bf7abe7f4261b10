import fc from 'fast-check';
import type { QueryField, TallyQuery } from '../../src/core/query.ts';
import type { CountedTrace } from '../../src/core/rollup.ts';
import { narrowNames } from '../../src/core/trace-fields.ts';
import type { NarrowTrace } from '../../src/core/trace-fields.ts';

/** Zones with odd offsets, changes of half an hour, changes at midnight, and a day that did not exist. */
export const timeZones = [
  'UTC',
  'Europe/Berlin',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'America/Sao_Paulo',
] as const;

/** Times near which something changes in one of the zones, in seconds. */
const edges = [
  '2000-01-01T00:00:00Z',
  '2010-12-31T23:00:00Z',
  '2011-12-30T10:00:00Z',
  '2018-11-04T03:00:00Z',
  '2024-02-29T00:00:00Z',
  '2024-03-31T01:00:00Z',
  '2024-04-06T15:00:00Z',
  '2024-10-05T15:30:00Z',
  '2024-10-27T01:00:00Z',
  '2024-12-31T18:15:00Z',
].map((text) => Date.parse(text) / 1000);

/** Around an edge: exact hours and days of every zone, a second before or after them, and anything between. */
const seconds = fc
  .tuple(
    fc.constantFrom(...edges),
    fc.integer({ min: -60, max: 60 }),
    fc.constantFrom(-1, 0, 0, 0, 1, 899, 900, 1_800, 2_700),
  )
  .map(([edge, hours, offset]) => edge + hours * 3_600 + offset);

const label = fc.constantFrom(null, null, 'a', 'b', 'c');
const count = fc.oneof(
  fc.constant(null),
  fc.nat({ max: 200 }),
  fc.nat({ max: 2 ** 31 - 1 }),
  fc.constant(2 ** 31 - 1),
);

const values: Record<keyof NarrowTrace, fc.Arbitrary<unknown>> = {
  ...(Object.fromEntries(narrowNames.map((name) => [name, count])) as Record<
    keyof NarrowTrace,
    fc.Arbitrary<unknown>
  >),
  model: fc.constantFrom('a', 'b', 'c'),
  status: fc.constantFrom('success', 'success', 'error'),
  cost_usd: fc.oneof(
    fc.constant(null),
    fc.nat({ max: 10 ** 9 }).map((picos) => picos / 1e12),
    fc.nat({ max: 10 ** 6 }).map((micros) => micros / 1e6),
    fc.constant(1_000_000),
  ),
  started_at: fc.oneof(
    fc.constant(null),
    seconds.map((second) => second * 1_000_000),
  ),
  feature_name: label,
  user_identifier: label,
  environment: label,
  provider: label,
  response_model: label,
  session_id: label,
  run_id: label,
  error_type: label,
  cost_source: fc.constantFrom(null, 'client', 'computed'),
};

export function countedTraces(_timeZone: string): fc.Arbitrary<CountedTrace[]> {
  const trace = fc.record({
    ...values,
    createdAtUs: seconds.map((second) => second * 1_000_000 + 7),
  }) as fc.Arbitrary<CountedTrace>;
  return fc.array(trace, { maxLength: 40 });
}

const fields: readonly QueryField[] = [
  ...(['status', 'model', 'feature_name', 'user_identifier'] as const),
  ...(['environment', 'provider', 'error_type'] as const),
];

export function tallyQueries(timeZone: string): fc.Arbitrary<TallyQuery> {
  const filter = fc.dictionary(
    fc.constantFrom(...fields),
    fc.oneof(
      fc.constant('set' as const),
      fc.subarray([null, 'a', 'b', 'success', 'error'], { minLength: 1 }),
    ),
    { maxKeys: 2, noNullPrototype: true },
  );
  const groupBy = fc.subarray([...fields], { maxLength: 2 });
  // Some weeks before or after the traces, so that whole weeks are in the range.
  const around = fc
    .tuple(seconds, fc.constantFrom(0, 0, -2, -1, 1, 2))
    .map(([second, weeks]) => second + weeks * 7 * 86_400);
  const bound = fc.oneof(
    around.map((second) => second * 1_000_000),
    around.map((second) => startOfDay(second, timeZone)),
  );
  const range = fc
    .tuple(bound, bound)
    .map(([a, b]) => ({ fromUs: Math.min(a, b), toUs: Math.max(a, b) }));
  return fc.record({
    filter: fc.oneof(fc.constant({}), filter),
    groupBy: fc.oneof(fc.constant<QueryField[]>([]), groupBy),
    range: fc.oneof(fc.constant(null), range),
    interval: fc.constantFrom(null, null, 'hour', 'day', 'week', 'month'),
    sumsOnly: fc.boolean(),
  });
}

function startOfDay(second: number, timeZone: string): number {
  const time = Temporal.Instant.fromEpochMilliseconds(second * 1000).toZonedDateTimeISO(timeZone);
  return time.startOfDay().epochMilliseconds * 1000;
}
