import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { draftTrace } from '../../src/core/trace.ts';
import { beginWriting } from '../../src/store/postgres/connection.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import type { TraceWrite } from '../../src/store/trace-writer.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { createDistributed } from '../support/cluster-like.ts';
import { eventually } from '../support/eventually.ts';
import { loggedStatements } from '../support/logged-statements.ts';
import { usePostgres } from '../support/postgres.ts';

/** How the store writes if its tables are distributed. The tables are ordinary ones here, on one server. */
const postgres = usePostgres();
const options = { clock: { kind: 'system' }, role: 'server', rolling: 'manual' } as const;

function write(teamId: string, count: number, keyHash?: string): TraceWrite {
  const drafts = Array.from({ length: count }, (_, i) =>
    // Every second trace has no payloads.
    draftTrace(
      i % 2 === 0 ? { model: `m${i}`, input: `in ${i}`, output: `"{}\\${i}` } : { model: `m${i}` },
    ),
  );
  return keyHash === undefined
    ? { teamId, drafts }
    : { teamId, drafts, request: { keyHash, bodyHash: 'b', rejected: null } };
}

async function storeAll(store: Store, writes: readonly TraceWrite[]): Promise<void> {
  for (const outcome of await store.append(writes)) {
    assert.equal(outcome.kind, 'stored', JSON.stringify(outcome));
  }
}

test('with Citus every setting is a text of its own, because Citus repeats the whole text on the nodes', () => {
  const traits = { synchronousCommit: 'on', hasCitus: true };
  for (const text of beginWriting(traits)) assert.doesNotMatch(text, /;/);
  assert.equal(beginWriting({ ...traits, hasCitus: false }).length, 1);
});

/** A server on new tables with teams whose counters and nodes it knows. */
async function openWithTeams(closing: AsyncDisposableStack, url: string, count: number) {
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const teams: string[] = [];
  for (let i = 0; i < count; i++) teams.push((await store.ensureTeam(`t${i}`, 1)).team.id);
  // The server must have seen that no other server writes to them.
  for (let i = 0; i < 10; i++) {
    await storeAll(
      store,
      teams.map((id) => write(id, 1)),
    );
  }
  return { store, teams };
}

async function createLogging(): Promise<string> {
  const url = await createDistributed(postgres);
  const name = new URL(url).pathname.slice(1);
  await postgres.sql(url, `alter database ${name} set log_statement = 'all'`);
  return url;
}

test('writes of several teams on a node are one call of a function, whose settings last until the commit', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createLogging();
  const { store, teams } = await openWithTeams(closing, url, 3);
  const statements = await eventually('the nodes to be known', 120_000, async () => {
    const all = await loggedStatements(postgres, url, () =>
      storeAll(
        store,
        teams.map((id) => write(id, 2)),
      ),
    );
    return all.length === 1 ? all : null;
  });
  const call =
    /select (tracetally_store_\w+)\(/.exec(statements.join())?.[1] ??
    assert.fail(statements.join());
  const [answer] = await postgres.sql(
    url,
    `with counter as (select team_id, last_seq, last_created_at_us as us from team_counters limit 1),
      stored as materialized (
        select ${call}(team_id, '{}', '{}', '{}', 0, 0, array[team_id], array[last_seq + 1], array[us], array[last_seq], array[us], '{0}',
          'local', '1234') from counter)
    select count(*)::integer as calls, current_setting('synchronous_commit') as commit, current_setting('lock_timeout') as lock from stored`,
  );
  assert.deepEqual(answer, { calls: 1, commit: 'local', lock: '1234ms' });
});

test('if one team has another counter than expected, nothing of the call is stored, and then everything once', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createDistributed(postgres);
  const { store, teams } = await openWithTeams(closing, url, 3);
  const other = await openPostgresStore({ ...options, url });
  closing.defer(() => other.close());
  for (let round = 0; round < 20; round++) {
    const [one = ''] = teams.slice(round % 3);
    await storeAll(other, [write(one, 1)]);
    await storeAll(
      store,
      teams.map((id) => write(id, 2, `round ${round}`)),
    );
  }
  assert.match(postgres.log(), /a counter is not as expected/);
  for (const [i, id] of teams.entries()) {
    const traces = 10 + 20 * 2 + Math.ceil((20 - i) / 3);
    assert.deepEqual(await verifyTeam(store, id), { traces, differences: [] });
  }
});

test('a team that is locked delays the other teams of its node only for a moment', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createDistributed(postgres);
  const { store, teams } = await openWithTeams(closing, url, 3);
  await storeAll(
    store,
    teams.map((id) => write(id, 1)),
  );
  const [locked = '', ...others] = teams;
  const holder = new pg.Client({ connectionString: url });
  await holder.connect();
  closing.defer(() => holder.end());
  await holder.query('begin');
  await holder.query('select 1 from team_counters where team_id = $1 for update', [locked]);
  const late = store.append([write(locked, 1)]);
  for (let i = 0; i < 10; i++) {
    await storeAll(
      store,
      others.map((id) => write(id, 1)),
    );
  }
  await holder.query('rollback');
  const [outcome] = await late;
  assert.equal(outcome?.kind, 'stored');
});

test('if the data of a team is on another node, the function stores nothing, and the traces are stored without it', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createDistributed(postgres);
  const { store, teams } = await openWithTeams(closing, url, 2);
  await postgres.sql(url, 'update citus.pg_dist_local_group set groupid = 1');
  for (let i = 0; i < 10; i++) {
    await storeAll(
      store,
      teams.map((id) => write(id, 2, `request ${i}`)),
    );
  }
  assert.match(postgres.log(), /the data of a team is on another node/);
  for (const id of teams) {
    assert.deepEqual(await verifyTeam(store, id), { traces: 30, differences: [] });
  }
});

test('if the function cannot be created on all nodes, traces are stored without it', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createDistributed(postgres);
  await postgres.sql(
    url,
    `create or replace function citus.create_distributed_function(
      function_name regprocedure, distribution_arg_name text, colocate_with text) returns void language plpgsql as
      'begin raise connection_failure using message = ''connection refused''; end'`,
  );
  const { store, teams } = await openWithTeams(closing, url, 2);
  for (let i = 0; i < 3; i++) {
    await storeAll(
      store,
      teams.map((id) => write(id, 2, `request ${i}`)),
    );
  }
  for (const id of teams) {
    assert.deepEqual(await verifyTeam(store, id), { traces: 16, differences: [] });
  }
  const made = await postgres.sql(
    url,
    "select 1 from pg_proc where proname like 'tracetally_store%'",
  );
  assert.deepEqual(made, []);
});

test('any number of rows is stored as it was sent', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createDistributed(postgres);
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const { id } = (await store.ensureTeam('t', 1)).team;
  for (let i = 0; i < 10; i++) await storeAll(store, [write(id, 1)]);
  let traces = 10;
  for (let count = 1; count <= 12; count++) {
    await storeAll(store, [write(id, count, `request ${count}`)]);
    traces += count;
    const { first: newest } = await store.page(id, { page: 1, limit: count, omit: new Set() });
    const stored = newest
      .toReversed()
      .map(({ model, input, output }) => ({ model, input, output }));
    const { drafts } = write(id, count);
    assert.deepEqual(
      stored,
      drafts.map(({ model, input, output }) => ({ model, input, output })),
    );
  }
  assert.deepEqual(await verifyTeam(store, id), { traces, differences: [] });
});

test('servers that write to the same teams in any order keep the sequence dense and store each request once', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createDistributed(postgres);
  const stores: Store[] = [];
  for (let i = 0; i < 3; i++) {
    const store = await openPostgresStore({ ...options, url });
    closing.defer(() => store.close());
    stores.push(store);
  }
  const [first = assert.fail()] = stores;
  const teams: string[] = [];
  for (const name of ['a', 'b', 'c']) teams.push((await first.ensureTeam(name, 1)).team.id);
  let stored = 0;
  for (let round = 0; round < 40; round++) {
    const outcomes = await Promise.all(
      // Some rounds have one writing server, some several. Every request is sent in two rounds.
      stores
        .slice(0, 1 + (round % stores.length))
        .map((store) => store.append(teams.map((id) => write(id, 2, `round ${round >> 1}`)))),
    );
    const kinds = outcomes.flat().map(({ kind }) => kind);
    assert.ok(!kinds.includes('failed'), JSON.stringify(outcomes));
    stored += kinds.filter((kind) => kind === 'stored').length;
  }
  assert.equal(stored, 20 * teams.length);
  for (const id of teams) {
    assert.deepEqual(await verifyTeam(first, id), { traces: 40, differences: [] });
  }
});
