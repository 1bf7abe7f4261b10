import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { makePostgres } from '../support/postgres.ts';
import { runsOf } from '../support/runs.ts';
import { manualClock, startTestService, us } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

/** Zones with whole, half and three-quarter hours, and with changes of an hour and of half an hour. */
const timeZones = [
  'UTC',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'America/New_York',
  'Australia/Lord_Howe',
] as const;

/** The changes of 2026 in New York and on Lord Howe Island. */
const changes = [
  '2026-03-08T07:00:00Z',
  '2026-11-01T06:00:00Z',
  '2026-04-04T15:00:00Z',
  '2026-10-03T15:30:00Z',
].map((text) => Date.parse(text));

const now = us('2026-11-08T12:34:56Z');
const postgres = makePostgres({});
const clock = manualClock(now);
let services: readonly TestService[] = [];
/** The keys of the team of each zone on both services. */
const keys = new Map<string, readonly string[]>();

const minute = 60_000;
const label = (...values: string[]) => fc.constantFrom(undefined, ...values);
/** Around the changes, to the quarter of an hour and beside it, and anywhere in the year. */
const startedAt = fc
  .oneof(
    {
      weight: 4,
      arbitrary: fc.tuple(fc.constantFrom(...changes), fc.integer({ min: -250, max: 250 })),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(
        fc.constant(Date.UTC(2026, 5, 1)),
        fc.integer({ min: -12_000, max: 12_000 }),
      ),
    },
  )
  .chain(([base, quarters]) =>
    fc
      .constantFrom(0, 0, 1, -1)
      .map((ms) => new Date(base + quarters * 15 * minute + ms).toISOString()),
  );
const trace = fc.record(
  {
    model: fc.constantFrom('a', 'b', 'c', 'd'),
    feature_name: label('f', 'g'),
    user_identifier: label('u', 'v', 'w', 'x'),
    environment: label('prod', 'test'),
    provider: label('p'),
    error_type: label('timeout'),
    session_id: label('s'),
    status: fc.constantFrom('success', 'success', 'error'),
    cost_usd: fc.oneof(
      fc.constant(undefined),
      fc.nat({ max: 10 ** 9 }).map((picos) => picos / 1e12),
      fc.constant(0.1),
    ),
    latency_ms: fc.oneof(fc.constant(undefined), fc.nat({ max: 100_000 })),
    prompt_tokens: fc.oneof(fc.constant(undefined), fc.nat({ max: 2 ** 31 - 1 })),
    started_at: startedAt,
    metadata: fc.constantFrom(undefined, { tier: 'gold' }, { tier: 'free' }),
  },
  { noNullPrototype: true },
);

before(async () => {
  await postgres.start();
  const onFile = await startTestService({ clock });
  const url = await postgres.createDatabase();
  services = [onFile, await startTestService({ clock, flags: { database: url } })];
  const traces = fc.sample(fc.array(trace, { minLength: 150, maxLength: 150 }), timeZones.length);
  for (const [i, timeZone] of timeZones.entries()) {
    const own: string[] = [];
    for (const service of services) {
      const { team } = await service.beside.ensureTeam(timeZone, now, timeZone);
      const { key } = await service.keyFor(team.name);
      for (const half of [traces[i]?.slice(0, 75), traces[i]?.slice(75)]) {
        const { status, text } = await service.call(key, 'POST', '/traces/batch', { traces: half });
        assert.equal(status, 201, text);
        // The second half is not rolled up.
        await service.beside.roll(team.id, 1_000);
        await service.beside.roll(team.id, 50);
      }
      own.push(key);
    }
    keys.set(timeZone, own);
  }
});
after(async () => {
  for (const service of services) await service.stop();
  await postgres.stop();
});

/** The reply of both stores, which must be the same bytes. */
async function ask(timeZone: string, path: string): Promise<string> {
  const replies = await Promise.all(
    services.map((service, i) => service.call(keys.get(timeZone)?.[i] ?? '', 'GET', path)),
  );
  const [left, right] = replies;
  assert.equal(left?.status, 200, `${path}: ${left?.text}`);
  assert.equal(right?.text, left.text, path);
  return left.text;
}

type Sums = Record<string, bigint>;
interface Row {
  start?: string;
  [field: string]: unknown;
}

const additive =
  'call_count error_count total_cost_usd uncosted_calls prompt_tokens completion_tokens cache_read_tokens cache_write_tokens reasoning_tokens'.split(
    ' ',
  );

/** Numbers as exact integers: costs in pico-dollars. */
function exactly(text: string): { rows: Row[]; other: Row[]; totals: Row } {
  return JSON.parse(text, (name, value: unknown, { source }: { source: string }) => {
    if (typeof value !== 'number' || !additive.includes(name)) return value;
    const [whole = '', fraction = ''] = source.split('.');
    return name === 'total_cost_usd' ? BigInt(whole + fraction.padEnd(12, '0')) : BigInt(whole);
  }) as { rows: Row[]; other: Row[]; totals: Row };
}

function sumOf(rows: readonly Row[]): Sums {
  return Object.fromEntries(
    additive.map((name) => [name, rows.reduce((sum, row) => sum + (row[name] as bigint), 0n)]),
  );
}

const only = (row: Row): Sums => sumOf([row]);

const filters = fc
  .dictionary(
    fc.constantFrom(
      'model',
      'feature_name',
      'user_identifier',
      'environment',
      'provider',
      'error_type',
      'session_id',
      'metadata.tier',
    ),
    fc.subarray(['', 'a', 'b', 'f', 'u', 'v', 'prod', 'p', 's', 'gold'], {
      minLength: 1,
      maxLength: 4,
    }),
    { maxKeys: 2, noNullPrototype: true },
  )
  .map((parts) =>
    Object.entries(parts).flatMap(([name, values]) => values.map((value) => `${name}=${value}`)),
  );

const date = fc
  .oneof(
    fc.tuple(fc.constantFrom(...changes), fc.integer({ min: -4, max: 4 })),
    fc.tuple(fc.constant(Date.UTC(2026, 5, 1)), fc.integer({ min: -150, max: 150 })),
  )
  .map(([base, days]) => new Date(base + days * 24 * 60 * minute).toISOString().slice(0, 10));
const ranges = fc.oneof(
  fc.constant([]),
  fc.constantFrom('last=24h', 'last=36h', 'last=7d', 'last=300d').map((last) => [last]),
  date.map((from) => [`from=${from}`]),
  date.map((to) => [`to=${to}`]),
  fc.tuple(date, date).map((days) => {
    const [from, to] = days.sort();
    return [`from=${from}`, `to=${to}`];
  }),
);

const question = fc.record({
  timeZone: fc.constantFrom(...timeZones),
  filter: filters,
  range: ranges,
  groupBy: fc.subarray(
    ['model', 'feature_name', 'user_identifier', 'environment', 'provider', 'status', 'error_type'],
    { maxLength: 2 },
  ),
  interval: fc.constantFrom('hour', 'day', 'week', 'month'),
  limit: fc.constantFrom(1, 2, 3, 1_000),
  order: fc.constantFrom(
    '-total_cost_usd',
    'call_count',
    '-p95_latency_ms',
    'avg_latency_ms',
    'success_rate',
  ),
});

const pathOf = (...parts: readonly string[]): string => `/analytics/query?${parts.join('&')}`;

describe('answers add up, and are the same bytes on both stores', { concurrency: 1 }, () => {
  const numRuns = runsOf(40);
  test(`in ${numRuns} random questions`, async (t) => {
    let calls = 0n;
    let rest = 0;
    await fc.assert(
      fc.asyncProperty(
        question,
        async ({ timeZone, filter, range, groupBy, interval, limit, order }) => {
          const about = [...filter, ...range];
          const whole = exactly(await ask(timeZone, pathOf(...about)));
          const totals = only(whole.totals);
          assert.deepEqual(sumOf(whole.rows), totals);
          calls += totals['call_count'] ?? 0n;

          const grouped =
            groupBy.length === 0
              ? []
              : [`group_by=${groupBy.join(',')}`, `limit=${limit}`, `order=${order}`];
          for (const more of [
            [],
            [`interval=${interval}`],
            [`interval=${interval}`, 'fill=zero'],
          ]) {
            // Each hour of a long range would be more than 10,000 rows.
            if (more.includes('fill=zero') && interval === 'hour') continue;
            const reply = exactly(await ask(timeZone, pathOf(...about, ...grouped, ...more)));
            assert.deepEqual(only(reply.totals), totals, 'totals do not depend on the grouping');
            assert.deepEqual(
              sumOf([...reply.rows, ...reply.other]),
              totals,
              'rows + other = totals',
            );
            rest += reply.other.length;
          }
          await compareGroups(timeZone, about, groupBy[0] ?? 'model', totals);
          await compareDays(timeZone, filter, range, totals);
        },
      ),
      { numRuns },
    );
    t.diagnostic(JSON.stringify({ calls: String(calls), rest }));
    assert.ok(calls > 100n && rest > 10);
  });
});

/** What a filter by each value of a field counts is together what is counted without the filter. */
async function compareGroups(
  timeZone: string,
  about: readonly string[],
  field: string,
  totals: Sums,
): Promise<void> {
  if (about.some((part) => part.startsWith(`${field}=`))) return;
  const { rows } = exactly(await ask(timeZone, pathOf(...about, `group_by=${field}`)));
  const parts: Row[] = [];
  for (const row of rows) {
    const value = encodeURIComponent((row[field] as string | null) ?? '');
    const part = exactly(await ask(timeZone, pathOf(...about, `${field}=${value}`)));
    assert.deepEqual(only(part.totals), only(row));
    parts.push(part.totals);
  }
  assert.deepEqual(sumOf(parts), totals);
}

/** Each day of a range on its own, the daily series, and the list of the traces. */
async function compareDays(
  timeZone: string,
  filter: readonly string[],
  range: readonly string[],
  totals: Sums,
): Promise<void> {
  const about = [...filter, ...range].join('&');
  const overview = JSON.parse(await ask(timeZone, `/analytics/overview?${about}`));
  assert.equal(BigInt(overview.total_calls), totals['call_count']);
  assert.equal(BigInt(overview.error_count), totals['error_count']);
  const [service] = services;
  const [key = ''] = keys.get(timeZone) ?? [];
  if (about !== '') {
    let listed = 0;
    for (let cursor = ''; ;) {
      const page = await service?.call(key, 'GET', `/traces?${about}&limit=100${cursor}`);
      listed += page?.json.traces.length;
      if (page?.json.next_cursor === null) break;
      cursor = `&cursor=${page?.json.next_cursor}`;
    }
    assert.equal(BigInt(listed), totals['call_count'], 'the list has the traces that are counted');
  }
  if (!range.some((part) => part.startsWith('from=') || part.startsWith('last='))) return;
  const days = JSON.parse(await ask(timeZone, `/analytics/daily?${about}`)) as {
    date: string;
    call_count: number;
  }[];
  const sum = days.reduce((calls, { call_count }) => calls + call_count, 0);
  assert.equal(BigInt(sum), totals['call_count']);
  const { call_count: count, date: day } = days[Math.floor(days.length / 2)] ?? assert.fail();
  if (range[0]?.endsWith('h')) return;
  const alone = exactly(await ask(timeZone, pathOf(...filter, `from=${day}`, `to=${day}`)));
  assert.equal(alone.totals['call_count'], BigInt(count), day);
}
