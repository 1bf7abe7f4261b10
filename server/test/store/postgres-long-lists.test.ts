import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { calendarOf } from '../../src/core/calendar.ts';
import { decodeMeasures } from '../../src/core/measures-sum.ts';
import type { TallyQuery } from '../../src/core/query.ts';
import { TallySheet } from '../../src/core/tally-sheet.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { TailParts, TailTooLong } from '../../src/store/postgres/tally-rows.ts';
import { eventually } from '../support/eventually.ts';
import { usePostgres } from '../support/postgres.ts';

const postgres = usePostgres();

const byModel: TallyQuery = { filter: {}, groupBy: ['model'], range: null, interval: null };

test('a list that the database cannot sort in a short time is read at length, and no statement goes on without its reader', async () => {
  const url = await postgres.createDatabase();
  await using closing = new AsyncDisposableStack();
  const store = await openPostgresStore({
    url,
    clock: { kind: 'system' },
    role: 'server',
    rolling: 'manual',
  });
  closing.defer(() => store.close());
  const { team } = await store.ensureTeam('t', 1);
  const drafts = Array.from({ length: 2 * limits.groupChunkRows + 100 }, (_, i) =>
    draftTrace({ model: `m${i % (2 * limits.groupChunkRows + 50)}` }),
  );
  await store.append([{ teamId: team.id, drafts }]);
  for (const speed of ['hot', 'wide'] as const) await store.roll(team.id, speed, drafts.length);
  // From now on the store knows that the list is long.
  const { rest } = await store.tallies(team.id, byModel);
  for await (const _ of rest ?? assert.fail('the list is short')) continue;

  const other = new pg.Client({ connectionString: url });
  await other.connect();
  closing.defer(() => other.end());
  await other.query('begin; lock table rollup_groups in access exclusive mode');
  const waiting = store.tallies(team.id, byModel, 3);
  waiting.catch(() => {});
  const waitingReads = `
    select query from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  await eventually('a read at length', 120_000, async () => {
    const rows = await postgres.sql(url, waitingReads);
    assert.ok(rows.length <= 1, 'the short read goes on');
    return String(rows[0]?.['query']).startsWith('declare');
  });
  await other.query('commit');
  const { first } = await waiting;
  assert.deepEqual(
    first.map(({ group, measures }) => [group[0], measures.calls]),
    [
      ['m0', 2],
      ['m1', 2],
      ['m10', 2],
    ],
  );
});

const newSheet = () =>
  new TallySheet({ ...byModel, groupBy: ['model', 'status'] }, calendarOf('UTC'));
const counted = (model: string) => ({ ...draftTrace({ model, latency_ms: 3 }), createdAtUs: 1 });

test('a long tail is added up in parts, and no trace is lost between them', () => {
  const parts = new TailParts(newSheet);
  const count = 2 * limits.tailPartRows + 10;
  for (let i = 0; i < count; i++) parts.add(counted(`m${i % 2}`));
  const { keys, areErrors, calls, sums } = parts.take();
  assert.deepEqual(
    keys.toSorted((a, b) => (String(a) < String(b) ? -1 : 1)),
    ['m0', 'm0', 'm0', 'm1', 'm1', 'm1'],
  );
  assert.ok(areErrors.every((isError) => !isError));
  assert.equal(
    calls.reduce((sum, each) => sum + each),
    count,
  );
  const latencies = sums.map(
    (each, i) =>
      decodeMeasures({ calls: calls[i] ?? 0, isError: false, sums: each, latencies: null })
        .latency_sum,
  );
  assert.equal(
    latencies.reduce((sum, each) => sum + each, 0n),
    3n * BigInt(count),
  );
});

test('a tail with too many groups for memory is not added up', () => {
  const parts = new TailParts(newSheet);
  const label = 'x'.repeat(limits.labelCharsMax - 6);
  const count = Math.ceil(limits.postgresTailBytesMax / label.length) + limits.tailPartRows;
  assert.throws(() => {
    for (let i = 0; i < count; i++) parts.add(counted(`${label}${i}`));
  }, TailTooLong);
});

test('a list of a tail with too many traces is read once enough of it is rolled up', async () => {
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({
    url,
    clock: { kind: 'system' },
    role: 'server',
    rolling: 'manual',
  });
  const { team } = await store.ensureTeam('t', 1);
  const count = limits.postgresTailRowsMax + 1_000;
  const drafts = Array.from({ length: count }, (_, i) => draftTrace({ model: `m${i}` }));
  await store.append([{ teamId: team.id, drafts }]);
  let isAnswered = false;
  const list = store.tallies(team.id, byModel).finally(() => (isAnswered = true));
  await delay(2 * limits.postgresTailRetryMs);
  assert.equal(isAnswered, false);
  await store.roll(team.id, 'hot', 2_000);
  const { first, rest } = await list;
  let names = first.length;
  for await (const chunk of rest ?? []) names += chunk.length;
  assert.equal(names, count);
  await store.close();
});
