import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { calendarOf } from '../../src/core/calendar.ts';
import { encodeMeasures } from '../../src/core/encoded-measures.ts';
import { noMeasures } from '../../src/core/measures.ts';
import { MeasuresSum } from '../../src/core/measures-sum.ts';
import type { TallyQuery } from '../../src/core/query.ts';
import { planQuery } from '../../src/core/query-plan.ts';
import type { Measures } from '../../src/core/measures.ts';
import { recordNames, recordText } from '../../src/core/record-fields.ts';
import { reportOn } from '../../src/core/report.ts';
import type { Report } from '../../src/core/report.ts';
import type { TallySheet } from '../../src/core/tally-sheet.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { openReading } from '../../src/store/sqlite/connection.ts';
import type { GroupDirectory } from '../../src/store/sqlite/group-directory.ts';
import { listQuestion } from '../../src/store/sqlite/group-list.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { BucketPacker, addRollup } from '../../src/store/sqlite/packed-bucket.ts';
import type { PackedBucket } from '../../src/store/sqlite/packed-bucket.ts';
import { PackedRun } from '../../src/store/sqlite/packed-run.ts';
import { PackedRollups } from '../../src/store/sqlite/packed-rollups.ts';
import { rankGroups } from '../../src/store/sqlite/ranked-groups.ts';
import { isSeries, rankSeries } from '../../src/store/sqlite/ranked-series.ts';
import { TallyReader } from '../../src/store/sqlite/tally-reader.ts';
import type { ReaderBounds } from '../../src/store/sqlite/tally-reader.ts';
import { prepareSnapshots } from '../../src/store/sqlite/team-snapshot.ts';
import type { Store } from '../../src/store/store.ts';
import { compareTallies } from '../property/tally-histories.ts';
import { runsOf } from '../support/runs.ts';
import { manualClock, talliesOf, temporaryFolder, us } from '../support/service.ts';

const runs = runsOf(15);

/** Every way to read rollups. With few bytes, nothing or only a part can be kept. */
const bounds: Readonly<Record<string, ReaderBounds>> = {
  'kept in memory': limits,
  'kept in memory, however few match': { ...limits, fewGroupsMax: 0 },
  'of all time without the rest': { ...limits, fewGroupsMax: 0, bucketsOfAllTime: -Infinity },
  'that are partly kept': { ...limits, keptRollupBytesMax: 3_000 },
  'that are never kept': { ...limits, keptRollupBytesMax: 0 },
  'of more groups than can be kept': { ...limits, keptGroupBytesMax: 1_500 },
};

describe('sums on the reading thread', () => {
  for (const [which, own] of Object.entries(bounds)) {
    test(`from rollups ${which} are those of a plain array, for ${runs} random histories`, () =>
      withStore(async (store, path) => {
        const db = openReading(path);
        try {
          const reader = new TallyReader(db, own);
          await compareTallies(readingBy(reader, store), runs);
        } finally {
          db.close();
        }
      }));
  }
});

test('groups are ranked on the reading thread as a list of all of them is, also after more were written', () =>
  withStore(async (store) => {
    const { team } = await store.ensureTeam('ranked', 1);
    const names = limits.groupChunkRows + 200;
    const append = async (count: number, offset: number): Promise<void> => {
      const drafts = Array.from({ length: count }, (_, i) => ({
        ...draftTrace({ model: 'm', user_identifier: `u${(i * 7) % names}` }),
        status: (i + offset) % 5 === 0 ? ('error' as const) : ('success' as const),
        cost_usd: ((i + offset) % 97) / 1_000,
        latency_ms: (i * 31 + offset) % 5_000,
        started_at: startUs + ((i + offset) % 25) * dayUs,
      }));
      const [outcome] = await store.append([{ teamId: team.id, drafts }]);
      assert.equal(outcome?.kind, 'stored');
    };
    const whole = { filter: {}, groupBy: ['user_identifier'], interval: null } as const;
    const questions: readonly TallyQuery[] = [
      { ...whole, range: null },
      { ...whole, range: { fromUs: startUs + dayUs, toUs: startUs + 20 * dayUs } },
      { ...whole, range: null, filter: { status: ['error'] } },
      { ...whole, range: null, interval: 'week' },
      { ...whole, range: null, interval: 'month', groupBy: ['status'] },
      { ...whole, range: null, interval: 'day', groupBy: [] },
      { ...whole, range: null, interval: 'week', groupBy: ['user_identifier', 'status'] },
    ];
    for (const [count, rolled] of [
      [1_000, 900],
      [1_000, 1_000],
      [700, 0],
      [40, 5_000],
    ] as const) {
      await append(count, rolled);
      await store.roll(team.id, 'wide', rolled);
      await store.roll(team.id, 'hot', rolled);
      for (const query of questions) {
        const all = await talliesOf(store, team.id, query);
        for (const by of ['total_cost_usd', 'error_count', 'p95_latency_ms'] as const) {
          const order = { by, isDescending: true };
          const report = await store.ranking(team.id, query, order, 100);
          assert.deepEqual(report && shown(report), shown(reportOn(query, all, order, 100)));
        }
      }
    }
  }));

test('new names that make a list too long to be ranked in memory are no error', () =>
  withStore(async (store) => {
    const { team } = await store.ensureTeam('many', 1);
    const batchRows = 1_000;
    const append = async (batch: number, count: number): Promise<void> => {
      const drafts = Array.from({ length: count }, (_, i) =>
        draftTrace({ model: 'm', user_identifier: `u${batch * batchRows + i}` }),
      );
      await store.append([{ teamId: team.id, drafts }]);
    };
    const batches = limits.tallyRowsMax / batchRows;
    for (let batch = 0; batch < batches; batch++) await append(batch, batchRows);
    while ((await store.roll(team.id, 'wide', limits.rollRowsMax)) > 0);
    while ((await store.roll(team.id, 'hot', limits.rollRowsMax)) > 0);
    await append(batches, 1);
    const query = {
      filter: {},
      groupBy: ['user_identifier'],
      interval: null,
      range: null,
    } as const;
    const order = { by: 'call_count', isDescending: true } as const;
    assert.equal(await store.ranking(team.id, query, order, 10), null);
    const all = await talliesOf(store, team.id, query);
    assert.equal(all.length, limits.tallyRowsMax + 1);
  }));

test('weeks that are kept as one sum are read again after any of them has changed', () =>
  withStore(async (store, path) => {
    const { team } = await store.ensureTeam('weeks', 1);
    const weeks = 12;
    const append = async (week: number, users: number, latencyMs: number): Promise<void> => {
      const drafts = Array.from({ length: 2 * users }, (_, i) => ({
        ...draftTrace({ model: 'm', user_identifier: `u${i % users}` }),
        status: i % 3 === 0 ? ('error' as const) : ('success' as const),
        // Two of them together do not fit into 53 bits.
        prompt_tokens: 2 ** 31 - 1 - i,
        cost_usd: 1_000_000 - i / 8,
        latency_ms: latencyMs + 97 * i,
        started_at: startUs + week * 7 * dayUs + i,
      }));
      const [outcome] = await store.append([{ teamId: team.id, drafts }]);
      assert.equal(outcome?.kind, 'stored');
      while ((await store.roll(team.id, 'wide', 1_000)) > 0);
    };
    for (let week = 0; week < weeks; week++) await append(week, 60 + week, week);
    const db = openReading(path);
    try {
      const reader = new TallyReader(db, { ...limits, bucketsOfAllTime: Infinity });
      const ask = (query: TallyQuery) =>
        reader.withPlan(team.id, query, (snapshot, plan, calendar) => {
          if (plan.kind === 'traces') return assert.fail();
          return reader.sum(snapshot, plan, query, calendar, 1_000)?.tallies();
        });
      const whole = { filter: {}, groupBy: ['user_identifier'], interval: null } as const;
      const questions: readonly TallyQuery[] = [
        { ...whole, range: { fromUs: startUs, toUs: startUs + weeks * 7 * dayUs } },
        { ...whole, range: { fromUs: startUs + 7 * dayUs, toUs: startUs + weeks * 7 * dayUs } },
        { ...whole, range: { fromUs: startUs, toUs: startUs + (weeks - 1) * 7 * dayUs } },
        {
          ...whole,
          sumsOnly: true,
          range: { fromUs: startUs - 70 * dayUs, toUs: startUs + weeks * 7 * dayUs },
        },
      ];
      // The second time they are one sum.
      for (const changed of [null, 0, 5, weeks - 1, null]) {
        if (changed !== null) await append(changed, 80, 2_000);
        for (const query of questions) {
          const right = await talliesOf(store, team.id, query);
          assert.deepEqual(ask(query), right);
          for (const _ of reader.prepare());
          assert.deepEqual(ask(query), right);
          assert.ok(right.length > 60);
        }
      }
    } finally {
      db.close();
    }
  }));

test('the weeks of every question that had many are one sum after a moment without questions', () =>
  withStore(async (store, path) => {
    const { team } = await store.ensureTeam('weeks', 1);
    const drafts = Array.from({ length: 600 }, (_, i) => ({
      ...draftTrace({ model: 'm', user_identifier: `u${i % 50}` }),
      started_at: startUs + (i % 12) * 7 * dayUs + i,
    }));
    await store.append([{ teamId: team.id, drafts }]);
    for (const speed of ['hot', 'wide'] as const) await store.roll(team.id, speed, 1_000);
    const db = openReading(path);
    try {
      const packed = new PackedRollups(db, { ...limits, keptRollupBytesMax: 30_000 });
      const snapshot = prepareSnapshots(db)(team.id) ?? assert.fail();
      const range = { fromUs: startUs, toUs: startUs + 12 * 7 * dayUs };
      const countOf = (groupBy: TallyQuery['groupBy']): number => {
        const query = { filter: {}, groupBy, interval: null, range };
        const plan = planQuery(query, calendarOf('UTC'));
        if (plan.kind === 'traces') return assert.fail();
        const [tile = assert.fail()] = plan.tiles;
        const how = { isKeptOnly: false, isOneSum: true };
        return [...packed.ofTile(snapshot, plan, tile, how)].length;
      };
      const counts = () => [countOf(['user_identifier']), countOf([])];
      assert.deepEqual(counts(), [12, 12]);
      for (const _ of packed.mergeRuns());
      assert.deepEqual(counts(), [1, 1]);
    } finally {
      db.close();
    }
  }));

test('a sum of many buckets is the sum of their rollups, or nothing if it is too large', () => {
  const directory = { numberOf: (blob: Uint8Array, at: number) => blob[at], learn() {} };
  const rollup = (group: number, calls: number, latencyMs: readonly number[]): Uint8Array => {
    const measures = { ...noMeasures(), calls, cost_picos: BigInt(calls) * 2n ** 52n };
    measures.latencies = new Map(latencyMs.map((bucket) => [bucket, calls]));
    const { sums, latencies } = encodeMeasures(measures);
    const numbers = Buffer.from(`${calls},${sums.length},${latencies.length},`);
    return Buffer.concat([Buffer.alloc(16, group), numbers, sums, latencies]);
  };
  const bucketOf = (...rollups: readonly Uint8Array[]): PackedBucket => {
    const packer = new BucketPacker(directory as unknown as GroupDirectory);
    packer.add(Buffer.concat(rollups));
    return packer.packed();
  };
  const buckets = [
    bucketOf(rollup(0, 1, [5]), rollup(7, 300, [1, 800])),
    bucketOf(rollup(3, 2, [])),
    bucketOf(rollup(7, 300, [2, 800]), rollup(0, 1, [5])),
  ];
  for (const bytesMax of [1_500, 100_000]) {
    const run = new PackedRun(bytesMax, bytesMax);
    for (const bucket of buckets) run.add(bucket);
    const expected = new MeasuresSum();
    for (const bucket of buckets) {
      for (const place of bucket.groups.keys()) addRollup(expected, bucket, place, false);
    }
    const packed = packedOf(run) ?? assert.fail();
    assert.deepEqual([...packed.groups], [0, 3, 7]);
    const found = new MeasuresSum();
    for (const place of packed.groups.keys()) addRollup(found, packed, place, false);
    assert.deepEqual(found.measures(), expected.measures());
    assert.deepEqual(found.encoded(), encodeMeasures(expected.measures()));
  }
  const none = new PackedRun(100, 100);
  for (const bucket of buckets) none.add(bucket);
  assert.equal(packedOf(none), null);
});

function packedOf(run: PackedRun): PackedBucket | null {
  const steps = run.packed();
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value;
}

const dayUs = 86_400_000_000;
const startUs = us('2026-10-05T00:00:00Z');

async function withStore(use: (store: Store, path: string) => Promise<void>): Promise<void> {
  const folder = temporaryFolder();
  const path = join(folder.path, 'packed.db');
  const { source } = manualClock(0);
  const store = await openSqliteStore({ path, clock: source, role: 'server', rolling: 'manual' });
  try {
    await use(store, path);
  } finally {
    await store.close();
    folder.remove();
  }
}

/** Everything that a reply says: a report may have percentiles instead of histograms. */
function shown({ rows, other, totals, groups }: Report) {
  const recordOf = (measures: Measures): string[] =>
    recordNames.map((name) => `${name} ${recordText(name, measures)}`);
  const lines = [...rows, ...other].map(({ group, startUs, measures }) => ({
    group,
    startUs,
    record: recordOf(measures),
  }));
  return { lines, totals: recordOf(totals), groups, others: other.length };
}

/** The store, but every question that rollups cover is answered as on the reading thread. */
function readingBy(reader: TallyReader, store: Store): Store {
  const tallies: Store['tallies'] = async (teamId, query) => {
    const found = reader.withPlan(teamId, query, (team, plan, calendar) => {
      if (plan.kind === 'traces') return null;
      const sum = (): TallySheet =>
        reader.sum(team, plan, query, calendar, limits.tallyRowsMax) ?? assert.fail();
      const question = listQuestion(query, plan);
      if (question || isSeries(query)) {
        const all = sum().tallies();
        for (const [n, by] of recordNames.entries()) {
          if (query.sumsOnly && by.startsWith('p') && by.endsWith('latency_ms')) continue;
          const order = { by, isDescending: n % 2 === 0 };
          const groupsMax = query.groupBy.length === 0 ? 1 : n % 4;
          const ranked = question
            ? rankGroups(reader, team, question, calendar, order, groupsMax)
            : rankSeries(reader, team, query, calendar, order, groupsMax);
          assert.deepEqual(ranked && shown(ranked), shown(reportOn(query, all, order, groupsMax)));
        }
      }
      return sum().tallies();
    });
    return found ? { first: found, rest: null } : store.tallies(teamId, query);
  };
  return Object.assign(Object.create(store) as Store, { tallies });
}
