import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { dailyQuery, overviewQuery } from '../../src/core/analytics.ts';
import { calendarOf } from '../../src/core/calendar.ts';
import type { TallyQuery } from '../../src/core/query.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { changeCosts } from '../support/changed-costs.ts';
import { loggedStatements } from '../support/logged-statements.ts';
import { usePostgres } from '../support/postgres.ts';
import { talliesOf, totalOf } from '../support/service.ts';
import { assertTallies } from '../support/tally-answers.ts';

const postgres = usePostgres({ log_statement: 'all', log_parameter_max_length: '0' });

const byModel: TallyQuery = { filter: {}, groupBy: ['model'], range: null, interval: null };
const dayUs = 86_400_000_000;

interface Stage extends AsyncDisposable {
  url: string;
  store: Store;
  /** Another server on the same database. */
  second: Store;
  teamId: string;
}

/** A team with traces of some models, of which the first ones are rolled up. */
async function openStage(traces: number, rolled: number): Promise<Stage> {
  const url = await postgres.createDatabase();
  const open = () =>
    openPostgresStore({ url, clock: { kind: 'system' }, role: 'server', rolling: 'manual' });
  const [store, second] = [await open(), await open()];
  const { team } = await store.ensureTeam('t', 1);
  const stage = { url, store, second, teamId: team.id };
  await append(stage, traces);
  if (rolled > 0) await store.roll(team.id, rolled);
  return {
    ...stage,
    async [Symbol.asyncDispose]() {
      await store.close();
      await second.close();
    },
  };
}

async function append(
  { store, teamId }: Pick<Stage, 'store' | 'teamId'>,
  count: number,
): Promise<void> {
  const drafts = Array.from({ length: count }, (_, i) =>
    draftTrace({ model: `m${i % 5}`, latency_ms: i, cost_usd: 0.5 }),
  );
  const [outcome] = await store.append([{ teamId, drafts }]);
  assert.equal(outcome?.kind, 'stored', JSON.stringify(outcome));
}

test('an answer takes one round trip, with rollups, a tail and changes', async () => {
  await using stage = await openStage(50, 30);
  const { store, teamId, url } = stage;
  await store.timeZone(teamId);
  await changeCosts(store, teamId, [0, 10], () => 2);
  const order = { by: 'total_cost_usd', isDescending: true } as const;
  const daily = dailyQuery(Date.now() * 1000, calendarOf('UTC'));
  const questions: (() => Promise<unknown>)[] = [
    () => store.tallies(teamId, overviewQuery),
    () => store.tallies(teamId, byModel),
    () => store.tallies(teamId, daily),
    () => store.ranking(teamId, overviewQuery, order, 10),
    () => store.ranking(teamId, byModel, order, 2),
    () => store.ranking(teamId, { ...byModel, ...daily, groupBy: ['model'] }, order, 2),
    () => store.ranking(teamId, byModel, { ...order, by: 'p95_latency_ms' }, 2),
  ];
  for (const ask of questions) {
    const statements = await loggedStatements(postgres, url, async () => void (await ask()));
    assert.equal(statements.length, 1, statements.join('\n'));
    assert.match(statements[0] ?? '', /roll_marks/);
  }
});

test('a question that was planned for another time zone is asked again', async () => {
  await using stage = await openStage(20, 20);
  const { store, second, teamId, url } = stage;
  const nowUs = Date.now() * 1000;
  const query = (zone: string): TallyQuery => dailyQuery(nowUs, calendarOf(zone));
  assert.equal((await talliesOf(store, teamId, query('UTC'))).length, 1);
  await second.rebuild(teamId, 'Asia/Kathmandu');
  const daily = query('Asia/Kathmandu');
  const ask = async () => {
    const [day] = await talliesOf(store, teamId, daily);
    assert.equal(day?.measures.calls, 20);
    // Days of Kathmandu begin at 18:15 UTC.
    assert.equal((day?.startUs ?? 0) % dayUs, (18 * 60 + 15) * 60_000_000);
  };
  for (const attempts of [2, 1]) {
    const statements = await loggedStatements(postgres, url, ask);
    assert.equal(statements.length, attempts, statements.join('\n'));
  }
});

/** Lets no other transaction roll up the team. */
async function holdMark({ url, teamId }: Stage): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('begin');
  await client.query('select 1 from roll_marks where team_id = $1 for update', [teamId]);
  return () => client.end();
}

test('costs change while another process rolls up the team, and two rollers add each change once', async () => {
  await using stage = await openStage(400, 300);
  const { store, second, teamId } = stage;
  const release = await holdMark(stage);
  let changed = 0;
  for (const cost of [1, null, 0.25]) {
    changed += await changeCosts(store, teamId, [0, 350], () => cost);
  }
  assert.equal(changed, 3 * 350);
  const before = await talliesOf(store, teamId, byModel);
  await release();
  const rolled = await Promise.all(
    [store, second].map(async (by) => {
      let rows = 0;
      for (let some = -1; some !== 0; rows += some) some = await by.roll(teamId, 60);
      return rows;
    }),
  );
  // Two entries for each change: the values before and after it.
  assert.equal(
    rolled.reduce((sum, rows) => sum + rows),
    2 * changed + 100,
  );
  assert.deepEqual(await talliesOf(second, teamId, byModel), before);
  assert.equal((await totalOf(store, teamId)).cost_picos, (350n * 25n + 50n * 50n) * 10n ** 10n);
  assert.deepEqual(await verifyTeam(store, teamId), { traces: 400, differences: [] });
});

test('costs are changed even if their changes cannot be rolled up', async () => {
  await using stage = await openStage(20, 20);
  const { store, teamId, url } = stage;
  await refuseRollups(url, 'true');
  assert.equal(await changeCosts(store, teamId, [0, 20], () => 1), 20);
  assert.equal((await totalOf(store, teamId)).cost_picos, 20n * 10n ** 12n);
  assert.deepEqual((await verifyTeam(store, teamId)).differences, []);
  await postgres.sql(url, 'drop trigger refuse on rollups');
  assert.equal(await store.roll(teamId, 100), 40);
  assert.equal((await totalOf(store, teamId)).cost_picos, 20n * 10n ** 12n);
  assert.deepEqual((await verifyTeam(store, teamId)).differences, []);
});

async function refuseRollups(url: string, when: string): Promise<void> {
  await postgres.sql(
    url,
    `create function refuse() returns trigger language plpgsql as
     $$ begin raise exception 'no more room'; end $$`,
  );
  await postgres.sql(
    url,
    `create trigger refuse before insert or update on rollups for each row when (${when}) execute function refuse()`,
  );
}

/** The answer is the sum of the traces, changed or not. */
async function assertSums({ store, url, teamId }: Stage): Promise<void> {
  const tallies = await talliesOf(store, teamId, byModel);
  const plain = await postgres.sql(
    url,
    `select model, count(*) as calls, sum(coalesce(cost_micros, 0)) * 1000000 as picos
     from traces where team_id = $1 group by model order by calls desc, model`,
    [teamId],
  );
  assert.deepEqual(
    tallies.map(({ group, measures }) => [group[0], measures.calls, measures.cost_picos]),
    plain.map(({ model, calls, picos }) => [model, Number(calls), BigInt(String(picos))]),
  );
}

test('the unused mark of a generation that is being built counts nothing twice', async () => {
  await using stage = await openStage(60, 40);
  const { store, second, teamId, url } = stage;
  await changeCosts(store, teamId, [0, 20], () => 1);
  await store.roll(teamId, 10_000);
  await refuseRollups(url, 'new.generation > 1');
  await assert.rejects(second.rebuild(teamId, 'Asia/Tokyo'));
  const marks = `select is_active, seq::integer, change_no::integer from roll_marks order by generation`;
  assert.deepEqual(await postgres.sql(url, marks), [
    { is_active: true, seq: 60, change_no: 40 },
    { is_active: false, seq: 0, change_no: 40 },
  ]);
  await append(stage, 7);
  const release = await holdMark(stage);
  await changeCosts(store, teamId, [10, 62], () => 3);
  await release();
  await assertSums(stage);
  await store.roll(teamId, 1_000);
  await changeCosts(store, teamId, [30, 67], () => null);
  await assertSums(stage);
  await postgres.sql(url, 'drop trigger refuse on rollups');
  await second.rebuild(teamId, 'Asia/Tokyo');
  for (const by of [store, second]) {
    await assertTallies(by, teamId);
    assert.equal(await by.timeZone(teamId), 'Asia/Tokyo');
  }
  assert.deepEqual(await verifyTeam(store, teamId), { traces: 67, differences: [] });
});
