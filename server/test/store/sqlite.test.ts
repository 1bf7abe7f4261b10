import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { startWriter } from '../../src/store/sqlite/writer-client.ts';
import type { Store } from '../../src/store/store.ts';
import type { TraceWrite } from '../../src/store/trace-writer.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import {
  daysOf,
  groupsOf,
  startTestService,
  temporaryFolder,
  totalOf,
} from '../support/service.ts';

const system = { kind: 'system' } as const;

async function withStore(work: (store: Store, path: string) => Promise<void>): Promise<void> {
  const folder = temporaryFolder();
  const path = join(folder.path, 'a.db');
  const store = await openSqliteStore({ path, clock: system, role: 'server' });
  try {
    await work(store, path);
  } finally {
    await store.close();
    folder.remove();
  }
}

test('a team with a number past 8,192 is read like any other, though its keys pass 2^53', () =>
  withStore(async (store, path) => {
    const beside = new DatabaseSync(path);
    beside.exec(
      `insert into teams (no, id, name, created_at_us, time_zone) values (8388607, 'far', 'far', 1, 'UTC')`,
    );
    beside.close();
    const drafts = [draftTrace({ model: 'a' }), draftTrace({ model: 'b' })];
    const [outcome] = await store.append([{ teamId: 'far', drafts }]);
    assert.equal(outcome?.kind, 'stored');
    const { first, total } = await store.page('far', { page: 1, limit: 20, omit: new Set() });
    assert.deepEqual([total, first.map(({ model }) => model)], [2, ['b', 'a']]);
    assert.equal((await store.trace('far', first[0]?.id ?? ''))?.model, 'b');
    await store.roll('far', 10);
    assert.equal((await totalOf(store, 'far')).calls, 2);
    assert.deepEqual((await verifyTeam(store, 'far')).differences, []);
    assert.deepEqual(await store.checkStorage(), []);
  }));

test('payloads that are skipped on the way to a later one count like payloads that are read', () =>
  withStore(async (store) => {
    const { team } = await store.ensureTeam('t', 1);
    const input = randomBytes(400_000).toString('base64');
    for (let i = 0; i < 6; i++) {
      const drafts = [draftTrace({ model: `m${i}`, input, output: 'short' })];
      await store.append([{ teamId: team.id, drafts }]);
    }
    const request = { page: 1, limit: 10, omit: new Set(['input'] as const) };
    const { first, rest } = await store.page(team.id, request);
    const traces = [...first];
    assert.ok(traces.length < 6);
    for await (const chunk of rest ?? assert.fail('it all came at once')) traces.push(...chunk);
    assert.deepEqual([...new Set(traces.map((trace) => trace.output))], ['short']);
    assert.equal(traces.length, 6);
  }));

test('a cached answer is valid only until the next commit, also of another connection or team', () =>
  withStore(async (store, path) => {
    const tool = await openSqliteStore({ path, clock: system, role: 'tool' });
    const { team } = await store.ensureTeam('t', 1);
    const { team: other } = await store.ensureTeam('other', 1);
    const nowUs = Date.now() * 1000;
    const answers = async () => {
      const calls = async (field: 'model' | 'feature_name') =>
        (await groupsOf(store, team.id, field)).map(({ measures }) => measures.calls);
      const days = await daysOf(store, team.id, nowUs);
      return [
        (await totalOf(store, team.id)).calls,
        days.reduce((sum, { measures }) => sum + measures.calls, 0),
        ...(await calls('model')),
        ...(await calls('feature_name')),
      ];
    };
    const drafts = [draftTrace({ model: 'm', feature_name: 'f' })];
    try {
      for (let i = 1; i <= 20; i++) {
        await (i % 2 === 0 ? store : tool).append([{ teamId: team.id, drafts }]);
        assert.deepEqual(await answers(), [i, i, i, i]);
        assert.deepEqual(await answers(), [i, i, i, i]);
        await store.append([{ teamId: other.id, drafts }]);
        assert.deepEqual(await answers(), [i, i, i, i]);
      }
    } finally {
      await tool.close();
    }
  }));

test('every append is settled when the writer dies, and none after it', async () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'a.db');
  const store = await openSqliteStore({ path, clock: system, role: 'server' });
  const { team } = await store.ensureTeam('t', 1);
  const writer = await startWriter({ path, clock: system }, {});
  const write: TraceWrite = { teamId: team.id, drafts: [draftTrace({ model: 'm' })] };
  const before = writer.append([write]);
  // No caller can send this: it is the stand-in for a mistake of ours that ends the thread.
  const uncountable = { ...draftTrace({ model: 'm' }), input: { length: 1n } };
  const deadly = writer.append([
    { teamId: team.id, drafts: [uncountable] } as unknown as TraceWrite,
  ]);
  const behind = writer.append([write]);
  const kinds = (await Promise.all([before, deadly, behind])).map(([outcome]) => outcome?.kind);
  assert.deepEqual(kinds.slice(1), ['failed', 'failed']);
  const [late] = await writer.append([write]);
  assert.deepEqual(
    [late?.kind, late?.kind === 'failed' && late.code],
    ['failed', 'store_unavailable'],
  );
  assert.throws(() => writer.ping(), /is not responding/);
  await writer.close();
  const { total } = await store.page(team.id, { page: 1, limit: 1, omit: new Set() });
  assert.equal(total, kinds.filter((kind) => kind === 'stored').length);
  await store.close();
  folder.remove();
});

test('a gap in the sequence is answered with 503, and the service goes on', async () => {
  const service = await startTestService();
  try {
    const { key } = await service.keyFor();
    for (let i = 0; i < 5; i++) {
      await service.call(key, 'POST', '/traces', { model: 'm', input: 'x'.repeat(700_000) });
    }
    const beside = new DatabaseSync(service.databasePath);
    beside.exec('delete from traces where key & 0xffffffffff = 1');
    beside.close();
    const one = await service.call(key, 'GET', '/traces?limit=1&page=5');
    assert.deepEqual([one.status, one.json.code], [503, 'store_unavailable']);
    // A streamed page breaks off: half an answer must not look like a whole one.
    await assert.rejects(service.call(key, 'GET', '/traces?limit=100'));
    assert.equal((await service.call(key, 'GET', '/readyz')).status, 200);
  } finally {
    await service.stop();
  }
});

test('/readyz fails when the file was moved away', async () => {
  const service = await startTestService();
  try {
    const { renameSync } = await import('node:fs');
    assert.equal((await service.call(null, 'GET', '/readyz')).status, 200);
    renameSync(service.databasePath, `${service.databasePath}.away`);
    assert.equal((await service.call(null, 'GET', '/readyz')).status, 503);
    renameSync(`${service.databasePath}.away`, service.databasePath);
    assert.equal((await service.call(null, 'GET', '/readyz')).status, 200);
  } finally {
    await service.stop();
  }
});

test('the writing connection is in WAL mode and syncs at each commit', () =>
  withStore(async (_store, path) => {
    const { openWriting } = await import('../../src/store/sqlite/connection.ts');
    using db = openWriting(path);
    assert.equal(db.prepare('pragma journal_mode').get()?.['journal_mode'], 'wal');
    assert.equal(db.prepare('pragma synchronous').get()?.['synchronous'], 2);
    assert.ok(statSync(path).size > 0);
  }));
