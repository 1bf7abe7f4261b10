import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { plainFunction } from '../../src/store/postgres/store-function.ts';
import type { Store } from '../../src/store/store.ts';
import type { TraceWrite } from '../../src/store/trace-writer.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { usePostgres } from '../support/postgres.ts';

const postgres = usePostgres();
const options = { clock: { kind: 'system' }, role: 'server', rolling: 'manual' } as const;

const write = (teamId: string, keyHash: string): TraceWrite => ({
  teamId,
  drafts: [draftTrace({ model: 'm', input: 'in' })],
  request: { keyHash, bodyHash: 'b', rejected: null },
});

async function kindsOf(store: Store, writes: readonly TraceWrite[]): Promise<string[]> {
  return (await store.append(writes)).map(({ kind }) => kind);
}

/** The names of the functions in a database. */
async function functionsOf(url: string): Promise<unknown> {
  const rows = await postgres.sql(
    url,
    "select proname as name from pg_proc where proname like 'tracetally_store_%'",
  );
  return rows.map(({ name }) => name);
}

test('another counter than expected, and a request that was stored before, are no errors for PostgreSQL', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const [one, two] = [
    await openPostgresStore({ ...options, url }),
    await openPostgresStore({ ...options, url }),
  ];
  closing.defer(async () => void (await Promise.all([one.close(), two.close()])));
  const { id: a } = (await one.ensureTeam('a', 1)).team;
  const { id: b } = (await one.ensureTeam('b', 1)).team;
  const before = postgres.log().length;
  for (let i = 0; i < 6; i++) {
    for (const [n, store] of [one, one, two].entries()) {
      const writes = [write(a, `${i} ${n}`), write(b, `${i} ${n}`)];
      assert.deepEqual(await kindsOf(store, writes), ['stored', 'stored']);
      // In the first rounds the counters are others than expected; in the last, each request is sent again.
      if (i < 3) continue;
      assert.deepEqual(await kindsOf(store, writes), ['replayed', 'replayed']);
    }
  }
  // The log comes through a pipe: what stands before a mark is all there when the mark is.
  await postgres.sql(url, "do $$ begin raise log 'mark of the end'; end $$");
  await eventually('the mark in the log', 120_000, () =>
    postgres.log().includes('mark of the end'),
  );
  assert.doesNotMatch(postgres.log().slice(before), /ERROR/);
  for (const id of [a, b]) {
    assert.deepEqual(await verifyTeam(one, id), { traces: 18, differences: [] });
  }
});

test('the settings of a call last until its commit', async () => {
  const url = await postgres.createDatabase();
  await (await openPostgresStore({ ...options, url })).close();
  const [answer] = await postgres.sql(
    url,
    `with stored as materialized (
       select ${plainFunction.name}('{}', '{}', '{}', 0, 0, '{}', '{}', '{}', '{}', '{}', '{}', 'local', '1234') as is_stored)
     select is_stored, current_setting('synchronous_commit') as commit, current_setting('lock_timeout') as lock from stored`,
  );
  assert.deepEqual(answer, { is_stored: true, commit: 'local', lock: '1234ms' });
});

test('a server whose database user may not create the function stores traces without it', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  await (await openPostgresStore({ ...options, url })).close();
  assert.deepEqual(await functionsOf(url), [plainFunction.name]);
  await postgres.sql(url, `drop function ${plainFunction.name}`);
  await postgres.sql(url, "create role writer login password 'secret'");
  await postgres.sql(url, 'revoke create on schema public from public');
  await postgres.sql(
    url,
    'grant select, insert, update, delete on all tables in schema public to writer',
  );
  const by = postgres.url(new URL(url).pathname.slice(1), { user: 'writer', password: 'secret' });
  const store = await openPostgresStore({ ...options, url: by });
  closing.defer(() => store.close());
  const { id } = (await store.ensureTeam('a', 1)).team;
  for (let i = 0; i < 5; i++) {
    assert.deepEqual(await kindsOf(store, [write(id, `${i}`)]), ['stored']);
    assert.deepEqual(await kindsOf(store, [write(id, `${i}`)]), ['replayed']);
  }
  assert.deepEqual(await functionsOf(url), []);
  assert.deepEqual(await verifyTeam(store, id), { traces: 5, differences: [] });
});

test('if the function is dropped while a server runs, traces are stored without it', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const { id } = (await store.ensureTeam('a', 1)).team;
  for (let i = 0; i < 6; i++) {
    if (i === 3) await postgres.sql(url, `drop function ${plainFunction.name}`);
    assert.deepEqual(await kindsOf(store, [write(id, `${i}`)]), ['stored']);
  }
  assert.deepEqual(await verifyTeam(store, id), { traces: 6, differences: [] });
});
