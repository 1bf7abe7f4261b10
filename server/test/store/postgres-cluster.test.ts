import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { beginWriting } from '../../src/store/postgres/connection.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import type { TraceWrite } from '../../src/store/trace-writer.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { createDistributed } from '../support/cluster-like.ts';
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

test('a write whose counter is known is one update and one insert per table, and reads nothing', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await createDistributed(postgres);
  const name = new URL(url).pathname.slice(1);
  await postgres.sql(url, `alter database ${name} set log_statement = 'all'`);
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const { id } = (await store.ensureTeam('t', 1)).team;
  await storeAll(store, [write(id, 1)]);
  const statements = await loggedStatements(postgres, url, () => storeAll(store, [write(id, 1)]));
  const [begin, ...others] = statements.map((line) => line.replace(/^[^:]*:\s*/, '').trim());
  assert.match(begin ?? '', /^begin /);
  assert.deepEqual(
    others
      .filter((text) => !text.startsWith('set local'))
      .map((text) => /^(commit|\w+ \w+ \w+)/.exec(text)?.[1]),
    ['update team_counters set', 'insert into traces', 'insert into trace_payloads', 'commit'],
  );
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
