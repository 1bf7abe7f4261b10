import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { onlyMeasures, overviewQuery } from '../../src/core/analytics.ts';
import type { TallyQuery } from '../../src/core/query.ts';
import { draftTrace } from '../../src/core/trace.ts';
import type { TraceInput } from '../../src/core/trace-fields.ts';
import { Failure } from '../../src/errors.ts';
import { limits } from '../../src/limits.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { RollFailure, Store, StoreOptions } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { usePostgres } from '../support/postgres.ts';

const postgres = usePostgres();

const byModel: TallyQuery = { filter: {}, groupBy: ['model'], range: null, interval: null };

interface Stage extends AsyncDisposable {
  url: string;
  store: Store;
  teamId: string;
  failures: RollFailure[];
  append(...bodies: TraceInput[]): Promise<void>;
  calls(store?: Store): Promise<number>;
}

async function openStage(more: Partial<StoreOptions> = {}): Promise<Stage> {
  const url = await postgres.createDatabase();
  const failures: RollFailure[] = [];
  const onRollFailed = (failure: RollFailure): void => void failures.push(failure);
  const options = { clock: { kind: 'system' }, role: 'server', onRollFailed } as const;
  const store = await openPostgresStore({ ...options, ...more, url });
  const { team } = await store.ensureTeam('t', 1);
  return {
    url,
    store,
    teamId: team.id,
    failures,
    async append(...bodies) {
      const [outcome] = await store.append([{ teamId: team.id, drafts: bodies.map(draftTrace) }]);
      assert.equal(outcome?.kind, 'stored', JSON.stringify(outcome));
    },
    async calls(by = store) {
      return onlyMeasures((await by.tallies(team.id, overviewQuery)).first).calls;
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}

function isRolledUpTo(store: Store, teamId: string, seq: number) {
  return async (): Promise<boolean> => (await store.marks(teamId)).seq === seq;
}

/** The rollups are exactly the sums of the traces up to the marks. */
async function assertVerified(store: Store, teamId: string): Promise<void> {
  assert.deepEqual((await verifyTeam(store, teamId)).differences, []);
}

const manyModels = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => ({ model: `m${(i + from) % 50}`, latency_ms: i }));

test('without writes every trace is rolled up, and the answer stays the same', async () => {
  await using stage = await openStage();
  const { store, teamId } = stage;
  await stage.append(...manyModels(300));
  const before = (await store.tallies(teamId, byModel)).first;
  await eventually('all rolls', 120_000, isRolledUpTo(store, teamId, 300), 50);
  assert.deepEqual((await store.tallies(teamId, byModel)).first, before);
  await assertVerified(store, teamId);
  assert.deepEqual(stage.failures, []);
});

test('a busy server rolls up a team whose tail has reached its bound', async () => {
  await using stage = await openStage({ rollTailRows: 64 });
  const { store, teamId } = stage;
  let written = 0;
  // Writes never pause for as long as an idle server would wait.
  await eventually(
    'a roll beside the writes',
    120_000,
    async () => {
      await stage.append(...manyModels(5));
      written += 5;
      const { seq } = await store.marks(teamId);
      return written > 500 && seq >= 64;
    },
    1,
  );
  assert.equal(await stage.calls(), written);
});

test('what a server has not rolled up when it stops is rolled up by another one', async () => {
  await using stage = await openStage();
  const first = await openPostgresStore({
    url: stage.url,
    clock: { kind: 'system' },
    role: 'server',
    rolling: 'manual',
  });
  const drafts = manyModels(40).map(draftTrace);
  await first.append([{ teamId: stage.teamId, drafts }]);
  await first.close();
  const isRolled = isRolledUpTo(stage.store, stage.teamId, 40);
  await eventually('the rolls of the other server', 120_000, isRolled, 100);
  await assertVerified(stage.store, stage.teamId);
});

test('a roll that fails is reported and repeated; no write fails and no answer changes', async () => {
  await using stage = await openStage({ rollTailRows: 1 });
  const { store, teamId, url } = stage;
  await postgres.sql(
    url,
    `create function refuse() returns trigger language plpgsql as
     $$ begin raise exception 'no more room'; end $$`,
  );
  await postgres.sql(
    url,
    'create trigger refuse before insert or update on rollups execute function refuse()',
  );
  for (let i = 1; i <= 20; i++) {
    await stage.append({ model: 'm' });
    assert.equal(await stage.calls(), i);
  }
  await eventually('a report', 120_000, () => stage.failures.length > 0, 20);
  assert.deepEqual(stage.failures[0], { teamId, reason: 'no more room' });
  assert.deepEqual((await store.marks(teamId)).seq, 0);
  await postgres.sql(url, 'drop trigger refuse on rollups');
  await eventually('the next try', 120_000, isRolledUpTo(store, teamId, 20), 50);
  await assertVerified(store, teamId);
  assert.equal(await stage.calls(), 20);
});

test('two rollers whose connections are cut at any statement count every trace once', async (t) => {
  await using stage = await openStage({ rolling: 'manual' });
  const { store, teamId, url } = stage;
  const second = await openPostgresStore({
    url,
    clock: { kind: 'system' },
    role: 'server',
    rolling: 'manual',
  });
  await using closing = new AsyncDisposableStack();
  closing.defer(() => second.close());
  const killer = new pg.Client({ connectionString: url });
  await killer.connect();
  closing.defer(() => killer.end());
  let [cut, broken, written, isDone] = [0, 0, 0, false];
  const rollers = [store, second].map(async (by) => {
    while (!isDone) {
      await by.roll(teamId, 20).catch(() => (broken += 1));
    }
  });
  const untilMs = performance.now() + 150_000;
  try {
    while (cut < 40 && performance.now() < untilMs) {
      await stage.append(...manyModels(7, written));
      written += 7;
      const { rowCount } = await killer.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()
         and datname = current_database() and query ~ 'rollup|roll_marks' and state <> 'idle'`,
      );
      cut += rowCount ?? 0;
      assert.equal(await stage.calls(second), written);
    }
  } finally {
    isDone = true;
    await Promise.all(rollers);
  }
  t.diagnostic(`${cut} cut, ${broken} rolls failed, ${written} written`);
  assert.ok(cut >= 40 && broken > 0, `${cut} cut, ${broken} rolls failed`);
  await assertVerified(store, teamId);
  await store.roll(teamId, written);
  await assertVerified(store, teamId);
  assert.equal(await stage.calls(), written);
});

test('an answer is the same with a tail of any length, in one piece, in chunks and for the first few', async () => {
  await using stage = await openStage({ rolling: 'manual' });
  const { store, teamId } = stage;
  const count = 3_000;
  for (let i = 0; i < count; i += 500) {
    const bodies = Array.from({ length: 500 }, (_, j) => ({
      model: `m${(i + j) % 1_200}`,
      feature_name: `f${(i + j) % 7}`,
      cost_usd: 0.25,
    }));
    await stage.append(...bodies.slice(0, count - i));
  }
  const questions: TallyQuery[] = [
    overviewQuery,
    { ...byModel, groupBy: ['feature_name'] },
    { ...byModel, filter: { model: ['m1', 'm2'] } },
    {
      filter: { feature_name: ['f1'] },
      groupBy: ['model', 'status'],
      range: null,
      interval: 'day',
    },
  ];
  // One after the other: a busy machine cannot open a connection for each of them in the time that the store allows.
  const answers = async () => {
    const all = [];
    for (const query of questions) {
      all.push(await listOf(store, teamId, query));
      all.push((await store.tallies(teamId, query, 3)).first);
    }
    return all;
  };
  const longList = () => listOf(store, teamId, byModel);
  const unrolled = [await answers(), await longList()];
  assert.equal(unrolled[1]?.length, 1_200);
  for (const rows of [100, count]) {
    await store.roll(teamId, rows);
    assert.deepEqual([await answers(), await longList()], unrolled);
  }
});

async function listOf(store: Store, teamId: string, query: TallyQuery) {
  const { first, rest } = await store.tallies(teamId, query);
  const all = [...first];
  if (rest) for await (const chunk of rest) all.push(...chunk);
  return all;
}

test('a question with too many sums is refused with a clear failure', async () => {
  await using stage = await openStage({ rolling: 'manual' });
  const bodies = Array.from({ length: limits.tallyRowsMax + 1 }, (_, i) => ({
    model: 'm',
    user_identifier: `u${i}`,
  }));
  for (let i = 0; i < bodies.length; i += 2_000) await stage.append(...bodies.slice(i, i + 2_000));
  const query: TallyQuery = { ...byModel, groupBy: ['user_identifier', 'model'] };
  const isTooWide = (error: unknown) =>
    error instanceof Failure && error.code === 'question_too_wide';
  await assert.rejects(stage.store.tallies(stage.teamId, query), isTooWide);
  await assert.rejects(stage.store.tallies(stage.teamId, { ...query, interval: 'day' }), isTooWide);
  const users = await listOf(stage.store, stage.teamId, {
    ...byModel,
    groupBy: ['user_identifier'],
  });
  assert.equal(users.length, bodies.length);
});

test('a question by day is answered while traces of very many minutes are not rolled up', async () => {
  await using stage = await openStage({ rolling: 'manual' });
  const count = limits.tallyRowsMax + 100;
  const firstMs = Date.UTC(2026, 0, 1);
  const bodies = Array.from({ length: count }, (_, i) => ({
    model: 'm',
    started_at: new Date(firstMs + i * 60_000).toISOString(),
  }));
  for (let i = 0; i < count; i += 4_000) await stage.append(...bodies.slice(i, i + 4_000));
  const days = await listOf(stage.store, stage.teamId, { ...byModel, interval: 'day' });
  assert.equal(days.length, Math.ceil(count / (24 * 60)));
  assert.equal(
    days.reduce((sum, { measures }) => sum + measures.calls, 0),
    count,
  );
  const first = await stage.store.tallies(stage.teamId, { ...byModel, interval: 'day' }, 3);
  assert.deepEqual(first, { first: days.slice(0, 3), rest: null });
});

test('four labels of 255 wide characters roll up, and sums pass 2^63 without loss', async () => {
  await using stage = await openStage({ rolling: 'manual' });
  const { store, teamId } = stage;
  for (const character of ['語', '😀']) {
    const label = character.repeat(255 / character.length);
    await stage.append({
      model: label,
      feature_name: label,
      environment: label,
      provider: label,
      user_identifier: label,
    });
  }
  const costly = Array.from({ length: 10 }, () => ({ model: 'm', cost_usd: 1_000_000 }));
  await stage.append(...costly);
  await store.roll(teamId, 1_000);
  await stage.append(...costly, { model: 'm', cost_usd: 1e-12 });
  assert.deepEqual((await store.marks(teamId)).seq, 12);
  const { cost_picos } = onlyMeasures((await store.tallies(teamId, overviewQuery)).first);
  assert.equal(cost_picos, 20n * 10n ** 18n + 1n);
  await store.roll(teamId, 1_000);
  assert.equal(
    onlyMeasures((await store.tallies(teamId, overviewQuery)).first).cost_picos,
    cost_picos,
  );
  await assertVerified(store, teamId);
});

test('a rebuild that is interrupted continues, and leaves one generation', async () => {
  await using stage = await openStage({ rolling: 'manual' });
  const { store, teamId, url } = stage;
  await stage.append(...manyModels(200));
  await store.roll(teamId, 150);
  const before = await listOf(store, teamId, byModel);
  await assert.rejects(
    store.rebuild(teamId, 'Asia/Kathmandu', () => {
      throw new Error('interrupted');
    }),
    /interrupted/,
  );
  assert.deepEqual((await store.marks(teamId)).timeZone, 'UTC');
  assert.deepEqual(await listOf(store, teamId, byModel), before);
  // Another time zone: the interrupted generation is of no use.
  await store.rebuild(teamId, 'Pacific/Apia');
  const marks = await store.marks(teamId);
  assert.deepEqual([marks.timeZone, marks.seq], ['Pacific/Apia', 200]);
  assert.equal(await store.timeZone(teamId), 'Pacific/Apia');
  assert.deepEqual(await listOf(store, teamId, byModel), before);
  assert.deepEqual(await postgres.sql(url, 'select distinct generation from rollups'), [
    { generation: marks.generation },
  ]);
  assert.equal((await postgres.sql(url, 'select 1 from roll_marks')).length, 1);
  await assertVerified(store, teamId);
});

test('a lookup finds exactly the traces of a user, session or run, newest first, across blocks', async () => {
  await using stage = await openStage({ rolling: 'manual' });
  const { store, teamId } = stage;
  const count = 2 * 16_384 + 100;
  for (let i = 0; i < count; i += 2_000) {
    const bodies = Array.from({ length: Math.min(2_000, count - i) }, (_, j) => ({
      model: 'm',
      user_identifier: (i + j) % 1_000 === 7 ? 'seven' : 'other',
      session_id: (i + j) % 10_000 === 0 ? 'seven' : null,
    }));
    await stage.append(...bodies);
  }
  const expected = Array.from({ length: count }, (_, i) => i)
    .filter((i) => i % 1_000 === 7)
    .map((i) => i + 1)
    .toReversed();
  assert.deepEqual(await store.lookUp(teamId, 'user_identifier', 'seven'), expected);
  const [, second = 0] = expected;
  assert.deepEqual(
    await store.lookUp(teamId, 'user_identifier', 'seven', second),
    expected.slice(2),
  );
  assert.deepEqual(await store.lookUp(teamId, 'session_id', 'seven'), [30_001, 20_001, 10_001, 1]);
  assert.deepEqual(await store.lookUp(teamId, 'run_id', 'seven'), []);
  const others = await store.lookUp(teamId, 'user_identifier', 'other');
  assert.deepEqual([others.length, others[0]], [limits.lookupRowsMax, count]);
});
