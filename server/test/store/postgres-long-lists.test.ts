import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { overviewQuery } from '../../src/core/analytics.ts';
import type { TallyQuery } from '../../src/core/query.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { Failure } from '../../src/errors.ts';
import { limits } from '../../src/limits.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { loggedStatements } from '../support/logged-statements.ts';
import { usePostgres } from '../support/postgres.ts';
import { talliesOf, totalOf } from '../support/service.ts';

const postgres = usePostgres({ log_statement: 'all', log_parameter_max_length: '0' });

const byModel: TallyQuery = { filter: {}, groupBy: ['model'], range: null, interval: null };
const byUser: TallyQuery = { ...byModel, groupBy: ['user_identifier'] };

interface Stage extends AsyncDisposable {
  url: string;
  store: Store;
  teamId: string;
}

/** A team with some traces of each model and user, of which the first ones are rolled up. */
async function openStage(names: number, traces: number, rolled: number): Promise<Stage> {
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({
    url,
    clock: { kind: 'system' },
    role: 'server',
    rolling: 'manual',
  });
  const { team } = await store.ensureTeam('t', 1);
  const drafts = Array.from({ length: traces }, (_, i) =>
    draftTrace({ model: `m${i % names}`, user_identifier: `u${i % names}` }),
  );
  await store.append([{ teamId: team.id, drafts }]);
  if (rolled > 0) await store.roll(team.id, rolled);
  return { url, store, teamId: team.id, [Symbol.asyncDispose]: () => store.close() };
}

/** Statements and transactions of the store that have not ended. */
function openWork(url: string): Promise<Record<string, unknown>[]> {
  return postgres.sql(
    url,
    `select query from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'
       and application_name <> 'other'`,
  );
}

test('a list that is too long for memory comes in chunks, with rollups and a tail in each of them', async () => {
  const names = 2 * limits.groupChunkRows + 50;
  await using stage = await openStage(names, 2 * names, names + 700);
  for (const [query, letter] of [
    [byModel, 'm'],
    [byUser, 'u'],
  ] as const) {
    const { first, rest } = await stage.store.tallies(stage.teamId, query);
    const chunks = [first];
    for await (const chunk of rest ?? assert.fail('the list is short')) chunks.push([...chunk]);
    assert.ok(chunks.every(({ length }) => length <= limits.groupChunkRows));
    const all = chunks.flat();
    const expected = Array.from({ length: names }, (_, i) => [`${letter}${i}`, 2]);
    assert.deepEqual(
      all.map(({ group, measures }) => [group[0], measures.calls]),
      expected.sort(
        ([a = '', b = 0], [c = '', d = 0]) => Number(d) - Number(b) || (a < c ? -1 : 1),
      ),
    );
  }
  assert.deepEqual(await openWork(stage.url), []);
});

test('readers that leave a long list free their connections', async () => {
  const names = limits.groupChunkRows + 50;
  await using stage = await openStage(names, names, names);
  for (let i = 0; i < 2 * limits.postgresWideReadersMax; i++) {
    const { rest } = await stage.store.tallies(stage.teamId, byModel);
    (rest ?? assert.fail('the list is short')).close();
  }
  const hasEnded = async () => (await openWork(stage.url)).length === 0;
  await eventually('the end of all transactions', 120_000, hasEnded);
  assert.equal((await talliesOf(stage.store, stage.teamId, byModel)).length, names);
});

test('a question that takes too long is refused, and its statement ends', async () => {
  await using stage = await openStage(3, 6, 6);
  await using closing = new AsyncDisposableStack();
  const other = new pg.Client({ connectionString: stage.url, application_name: 'other' });
  await other.connect();
  closing.defer(() => other.end());
  await other.query('begin; lock table rollup_groups in access exclusive mode');
  await assert.rejects(
    stage.store.tallies(stage.teamId, byUser),
    (error: unknown) => error instanceof Failure && error.code === 'question_too_wide',
  );
  const hasEnded = async () => (await openWork(stage.url)).length === 0;
  await eventually('the end of the statement', 120_000, hasEnded);
  await other.query('commit');
  assert.equal((await talliesOf(stage.store, stage.teamId, byUser)).length, 3);
});

test('while very many traces are not rolled up, questions take turns with those that read many traces', async () => {
  await using stage = await openStage(3, 30, 10);
  const { store, teamId, url } = stage;
  const before = [await totalOf(store, teamId), await talliesOf(store, teamId, byModel)];
  assert.equal((before[0] as { calls: number }).calls, 30);
  // As if there were as many.
  await postgres.sql(
    url,
    `update team_counters set last_seq = last_seq + ${limits.tailRowsMax} where team_id = '${teamId}'`,
  );
  const statements = await loggedStatements(postgres, url, async () => {
    assert.deepEqual(
      [await totalOf(store, teamId), await talliesOf(store, teamId, byModel)],
      before,
    );
    const order = { by: 'call_count', isDescending: true } as const;
    const report = await store.ranking(teamId, byModel, order, 2);
    assert.deepEqual(
      report?.rows.map(({ measures }) => measures.calls),
      [10, 10],
    );
    assert.equal(report?.totals.calls, 30);
  });
  const turns = statements.filter((text) => text.includes('set local statement_timeout'));
  assert.equal(turns.length, 3, statements.join('\n'));
  assert.equal((await store.tallies(teamId, overviewQuery)).first.length, 1);
});
