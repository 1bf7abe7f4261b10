import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import pg from 'pg';
import { draftTrace } from '../../src/core/trace.ts';
import { setUuidTime, uuidBytes, uuidText } from '../../src/core/uuid.ts';
import { limits } from '../../src/limits.ts';
import { claimStatement } from '../../src/store/postgres/call-tokens.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { plainFunction } from '../../src/store/postgres/store-function.ts';
import type { Store } from '../../src/store/store.ts';
import type { TraceWrite } from '../../src/store/trace-writer.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { usePostgres } from '../support/postgres.ts';
import { manualClock } from '../support/service.ts';

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

/** The parameters of a call that stores nothing but its token. */
function emptyCall(teamId: string, token: string, lockMs = '1234'): unknown[] {
  const none = '{}';
  const noRows = [none, none, none, null, none, none, none];
  return [teamId, token, null, 'local', lockMs, 'false', `{${teamId}}`, '{0}', ...noRows];
}

/** A store with one team. */
async function openWithTeam(closing: AsyncDisposableStack) {
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const { id } = (await store.ensureTeam('a', 1)).team;
  return { url, store, id };
}

async function connected(closing: AsyncDisposableStack, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  closing.defer(() => client.end());
  return client;
}

test('counters that other servers have moved, and requests that were stored before, are no errors for PostgreSQL', async () => {
  await using closing = new AsyncDisposableStack();
  const { url, store: one, id: a } = await openWithTeam(closing);
  const two = await openPostgresStore({ ...options, url });
  closing.defer(() => two.close());
  const { id: b } = (await one.ensureTeam('b', 1)).team;
  const before = postgres.log().length;
  for (let i = 0; i < 6; i++) {
    for (const [n, store] of [one, one, two].entries()) {
      const writes = [write(a, `${i} ${n}`), write(b, `${i} ${n}`)];
      assert.deepEqual(await kindsOf(store, writes), ['stored', 'stored']);
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
  await using closing = new AsyncDisposableStack();
  const { url, id } = await openWithTeam(closing);
  const client = await connected(closing, url);
  const call = plainFunction.call.replace('select ', '').replaceAll(/\$(\d+)/g, '$$$1');
  const { rows } = await client.query<object>(
    `with stored as materialized (select ${call} as answer)
     select current_setting('synchronous_commit') as commit, current_setting('lock_timeout') as lock from stored where answer <> ''`,
    emptyCall(id, randomUUID()),
  );
  assert.deepEqual(rows, [{ commit: 'local', lock: `${limits.postgresLockMsMax / 1000}s` }]);
});

test('ids that PostgreSQL makes are those that the server replies with', async () => {
  await using closing = new AsyncDisposableStack();
  const { url, store, id: teamId } = await openWithTeam(closing);
  const timesUs = [1, 999, 1_000, 1_001_999, 1_700_000_000_000_000, 4_102_444_799_999_999];
  const drafts = timesUs.map(() => draftTrace({ model: 'm' }));
  const [outcome] = await store.append([{ teamId, drafts, timesUs }]);
  const stamps = outcome?.kind === 'stored' ? outcome.stamps : assert.fail();
  const rows = await postgres.sql(url, 'select id, created_at_us as us from traces order by seq');
  assert.deepEqual(
    rows.map(({ id, us }) => [id, Number(us)]),
    stamps.map(({ id, createdAtUs }) => [id, createdAtUs]),
  );
  for (const [i, { id, createdAtUs }] of stamps.entries()) {
    assert.equal(createdAtUs, timesUs[i]);
    const bytes = uuidBytes(id);
    setUuidTime(bytes, createdAtUs);
    assert.equal(uuidText(bytes), id);
  }
});

test('a call whose token was taken stores nothing, also if it arrives later', async () => {
  await using closing = new AsyncDisposableStack();
  const { url, id } = await openWithTeam(closing);
  const client = await connected(closing, url);
  const token = randomUUID();
  const claim = async () =>
    (await client.query<{ answer: string | null }>(claimStatement, [id, token, null])).rows;
  assert.deepEqual(await claim(), [{ answer: null }]);
  await assert.rejects(client.query(plainFunction.call, emptyCall(id, token)), /store_calls_pkey/);
  // Asking again gives the same answer.
  assert.deepEqual(await claim(), [{ answer: null }]);
});

test('who asks about a call that is still running waits for its end, and gets its answer', async () => {
  await using closing = new AsyncDisposableStack();
  const { url, id } = await openWithTeam(closing);
  const [running, asking] = [await connected(closing, url), await connected(closing, url)];
  for (const end of ['commit', 'rollback']) {
    const token = randomUUID();
    await running.query('begin');
    await running.query(plainFunction.call, emptyCall(id, token));
    const claim = asking.query<{ answer: string | null }>(claimStatement, [id, token, null]);
    const isWaiting = "select 1 from pg_locks where not granted and locktype = 'transactionid'";
    await eventually('the claim to wait', 120_000, async () => {
      return (await postgres.sql(url, isWaiting)).length > 0 ? true : null;
    });
    await running.query(end);
    const [{ answer } = assert.fail()] = (await claim).rows;
    if (end === 'commit') assert.deepEqual(JSON.parse(answer ?? '').firstSeqs, []);
    else assert.equal(answer, null);
  }
});

test('tokens are removed when they are of no use any more', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const clock = manualClock(1_700_000_000_000_000);
  const store = await openPostgresStore({ ...options, url, clock: clock.source });
  closing.defer(() => store.close());
  const { id } = (await store.ensureTeam('a', 1)).team;
  const refused = randomUUID();
  const client = await connected(closing, url);
  await client.query(claimStatement, [id, refused, 1_700_000_000_000_000]);
  const tokens = async () =>
    (await postgres.sql(url, 'select answer from store_calls')).map(({ answer }) => answer);
  for (let i = 0; i < 5; i++)
    assert.deepEqual(await kindsOf(store, [write(id, `${i}`)]), ['stored']);
  assert.equal((await tokens()).length, 6);
  clock.set(1_700_000_000_000_000 + limits.postgresCallLifeMs * 1000);
  await kindsOf(store, [write(id, 'later')]);
  await eventually('the old tokens to be gone', 120_000, async () => {
    const left = await tokens();
    return left.length === 2 && left.includes(null) ? true : null;
  });
  clock.set(1_700_000_000_000_000 + limits.postgresRefusedCallLifeMs * 1000);
  await kindsOf(store, [write(id, 'a day later')]);
  await eventually('the refused call to be forgotten', 120_000, async () => {
    return (await tokens()).includes(null) ? null : true;
  });
});

test('a server whose database user may not create the function says so; if the function is there, it needs no right', async () => {
  await using closing = new AsyncDisposableStack();
  const { url } = await openWithTeam(closing);
  await postgres.sql(url, "create role writer login password 'secret'");
  await postgres.sql(url, 'revoke create on schema public from public');
  await postgres.sql(
    url,
    'grant select, insert, update, delete on all tables in schema public to writer',
  );
  const by = postgres.url(new URL(url).pathname.slice(1), { user: 'writer', password: 'secret' });
  const store = await openPostgresStore({ ...options, url: by });
  closing.defer(() => store.close());
  const { id } = (await store.ensureTeam('b', 1)).team;
  assert.deepEqual(await kindsOf(store, [write(id, '1')]), ['stored']);
  await postgres.sql(url, `drop function ${plainFunction.name}`);
  await assert.rejects(
    openPostgresStore({ ...options, url: by }),
    /The database user is not allowed to create functions/,
  );
});

test('if the function is dropped while a server runs, the server creates it again', async () => {
  await using closing = new AsyncDisposableStack();
  const { url, store, id } = await openWithTeam(closing);
  for (let i = 0; i < 6; i++) {
    if (i === 3) await postgres.sql(url, `drop function ${plainFunction.name}`);
    assert.deepEqual(await kindsOf(store, [write(id, `${i}`)]), ['stored']);
  }
  assert.deepEqual(await functionsOf(url), [plainFunction.name]);
  assert.deepEqual(await verifyTeam(store, id), { traces: 6, differences: [] });
});

test('a team whose last trace is ahead of the clock waits for it up to 5 s, then the clock wins with a warning', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const clock = manualClock(1_700_000_000_000_000);
  const jumps: number[] = [];
  const store = await openPostgresStore({
    ...options,
    url,
    clock: clock.source,
    onClockJump: ({ aheadUs }) => jumps.push(aheadUs),
  });
  closing.defer(() => store.close());
  const { id: teamId } = (await store.ensureTeam('a', 1)).team;
  const at = async (us: number, count = 1) => {
    clock.set(us);
    const drafts = Array.from({ length: count }, () => draftTrace({ model: 'm' }));
    const [outcome] = await store.append([{ teamId, drafts }]);
    return outcome?.kind === 'stored' ? outcome.stamps.map(({ createdAtUs }) => createdAtUs) : [];
  };
  const startUs = 1_700_000_000_000_000;
  const max = limits.clockAheadUsMax;
  assert.deepEqual(await at(startUs, 2), [startUs, startUs + 1]);
  assert.deepEqual(await at(startUs, 1), [startUs + 2]);
  assert.deepEqual(await at(startUs + 2 - max, 2), [startUs + 3, startUs + 4]);
  assert.deepEqual(jumps, []);
  const back = startUs + 3 - max;
  assert.deepEqual(await at(back, 2), [back, back + 1]);
  assert.deepEqual(jumps, [max + 1]);
});
