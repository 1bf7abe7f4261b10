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

/** A server on new tables, with teams. */
async function openWithTeams(closing: AsyncDisposableStack, url: string, count: number) {
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const teams: string[] = [];
  for (let i = 0; i < count; i++) teams.push((await store.ensureTeam(`t${i}`, 1)).team.id);
  await storeAll(
    store,
    teams.map((id) => write(id, 1)),
  );
  return { store, teams };
}

test('writes of several teams on a node are one call of a function, also if another server has just written to them', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createDistributed(postgres);
  const name = new URL(url).pathname.slice(1);
  await postgres.sql(url, `alter database ${name} set log_statement = 'all'`);
  const { store, teams } = await openWithTeams(closing, url, 3);
  const other = await openPostgresStore({ ...options, url });
  closing.defer(() => other.close());
  // It asks for the nodes.
  await storeAll(
    other,
    teams.map((id) => write(id, 1)),
  );
  for (const by of [store, other, store]) {
    const statements = await loggedStatements(postgres, url, () =>
      storeAll(
        by,
        teams.map((id) => write(id, 2)),
      ),
    );
    assert.equal(statements.length, 1, statements.join('\n'));
    assert.match(statements.join(), /select tracetally_store_/);
  }
  for (const id of teams) {
    assert.deepEqual(await verifyTeam(store, id), { traces: 8, differences: [] });
  }
});

test('a team that is locked delays the other teams of its node only for a moment', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createDistributed(postgres);
  const { store, teams } = await openWithTeams(closing, url, 3);
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

test('if a team was moved to another node, nothing is stored there with the settings of this one, and its node is read again', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createDistributed(postgres);
  const { store, teams } = await openWithTeams(closing, url, 2);
  const writes = (request: string) => teams.map((id) => write(id, 2, request));
  await postgres.sql(url, 'update citus.pg_dist_local_group set groupid = 1');
  const kinds = (await store.append(writes('moved'))).map(({ kind }) => kind);
  assert.deepEqual(kinds, ['failed', 'failed']);
  assert.match(postgres.log(), /the data of a team is on another node/);
  // The function runs where the coordinator sends it: now that is the node of the team again.
  await postgres.sql(url, 'update citus.pg_dist_placement set groupid = 1');
  await storeAll(store, writes('moved'));
  await postgres.sql(url, 'update citus.pg_dist_placement set groupid = 2');
  const moving = store.append(writes('moved back'));
  await eventually('the function to refuse', 120_000, () =>
    postgres.log().split('the data of a team is on another node').length > 6 ? true : null,
  );
  await postgres.sql(url, 'update citus.pg_dist_local_group set groupid = 2');
  for (const { kind } of await moving) assert.ok(['stored', 'failed'].includes(kind));
  const last = await store.append(writes('moved back'));
  for (const { kind } of last) assert.ok(['stored', 'replayed'].includes(kind));
  for (const id of teams) {
    assert.deepEqual(await verifyTeam(store, id), { traces: 5, differences: [] });
  }
});

test('if a node does not respond when a server starts, the first write creates the function', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createDistributed(postgres);
  const replaceStandIn = (body: string) =>
    postgres.sql(
      url,
      `create or replace function citus.create_distributed_function(
        function_name regprocedure, distribution_arg_name text, colocate_with text) returns void language plpgsql as
        'begin ${body} end'`,
    );
  await replaceStandIn("raise connection_failure using message = ''connection refused'';");
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const { id } = (await store.ensureTeam('t', 1)).team;
  const functions = () =>
    postgres.sql(url, "select 1 from pg_proc where proname like 'tracetally_store%'");
  const [refused] = await store.append([write(id, 2, 'request')]);
  assert.equal(refused?.kind === 'failed' && refused.code, 'store_unavailable');
  assert.deepEqual(await functions(), []);
  await replaceStandIn('null;');
  await storeAll(store, [write(id, 2, 'request')]);
  assert.equal((await functions()).length, 1);
  assert.deepEqual(await verifyTeam(store, id), { traces: 2, differences: [] });
});

test('any number of rows is stored as it was sent', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createDistributed(postgres);
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const { id } = (await store.ensureTeam('t', 1)).team;
  let traces = 0;
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
