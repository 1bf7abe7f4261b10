import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../../src/store/open-store.ts';
import { spawnServer } from '../support/cli.ts';
import type { HowToRun } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { needProgram } from '../support/debian.ts';
import { temporaryFolder } from '../support/service.ts';
import { brokenCopy } from './broken-copy.ts';
import { compareWithStore, makeTeams, readAcknowledged, startLoad } from './crash-lab.ts';
import { skipUnlessCi } from '../support/skip.ts';

const clients = 16;

/** The writer's n-th sync fails with EIO. Every later one succeeds, though the state of the lost pages is unknown. */
const failOnce = (n: number, syncs: string): readonly string[] => [
  'strace',
  // As a separate process, so that signals reach the server and not the tracer.
  '-D',
  '-f',
  '-qq',
  '-o',
  syncs,
  '-e',
  'trace=fsync,fdatasync',
  '-e',
  `inject=fsync,fdatasync:error=EIO:when=${n}`,
];

test('after a failed sync no write is acknowledged, and a restart restores everything', async (t) => {
  const reason = whyNot();
  if (reason !== null) return skipUnlessCi(t, reason);
  for (const n of [12, 13, 25]) {
    const { acknowledgedLater, status, ready, page, result } = await failUnderLoad(t, n, {});
    assert.equal(status, 503, 'a write after the failed sync was acknowledged');
    assert.equal(acknowledgedLater, 0, 'a retried sync was believed');
    assert.equal(ready, 503);
    assert.equal(page, 200, 'reads go on');
    assert.deepEqual(result.lost, []);
    assert.deepEqual(result.twice, []);
    assert.ok(result.acknowledged > 0);
    assert.ok(result.stored - result.acknowledged <= clients, `${result.stored} stored`);
  }
});

test('the control that goes on after an I/O error does acknowledge later writes', async (t) => {
  const reason = whyNot();
  if (reason !== null) return skipUnlessCi(t, reason);
  const folder = temporaryFolder();
  const launcher = brokenCopy(
    folder.path,
    'store/sqlite/writer.ts',
    'if (isFatal) this.#brokenBy = reason;',
    '',
  );
  const { acknowledgedLater, status } = await failUnderLoad(t, 12, { launcher });
  folder.remove();
  assert.equal(status, 201);
  assert.ok(
    acknowledgedLater > 0,
    'the injected fault does nothing: the test above proves nothing',
  );
});

function whyNot(): string | null {
  const missing = needProgram('strace');
  if (missing !== null) return missing;
  const { status, stderr } = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true'], {
    encoding: 'utf8',
  });
  return status === 0 ? null : `strace cannot trace here: ${stderr.trim()}`;
}

/** The first server does so, with syncs that would be counted too. */
async function makeRollupFile(path: string): Promise<void> {
  const clock = { kind: 'system' } as const;
  const store = await openStore({ kind: 'sqlite', path }, { clock, role: 'server' });
  await store.close();
}

async function failUnderLoad(t: TestContext, n: number, how: HowToRun) {
  const folder = temporaryFolder();
  t.after(folder.remove);
  const databasePath = join(folder.path, 'fsync.db');
  const teams = await makeTeams(databasePath, 2);
  await makeRollupFile(databasePath);
  const key = teams[0]?.key ?? '';
  const flags = ['--database', `sqlite:${databasePath}`, '--log-level', 'silent'];
  const syncs = join(folder.path, 'syncs.txt');
  const server = await spawnServer(flags, {}, { ...how, wrapper: failOnce(n, syncs) });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const load = startLoad(server.url, folder.path, clients, 1, teams);
  await load.begun();
  const hasFailed = () => readFileSync(syncs, 'utf8').includes('(INJECTED)');
  await eventually('a sync that fails', 30_000, hasFailed, 20);
  await settle(folder.path);
  const before = readAcknowledged(folder.path).length;
  const post = await fetch(`${server.url}/traces`, {
    method: 'POST',
    headers,
    body: '{"model":"late"}',
  });
  const ready = await fetch(`${server.url}/readyz`);
  const page = await fetch(`${server.url}/traces?limit=1`, { headers });
  // Time for a later acknowledgement. It must not come, except in the control.
  const isLater = () => readAcknowledged(folder.path).length > before;
  await eventually('a later acknowledgement', 1000, isLater, 20).catch(() => {});
  const acknowledgedLater = readAcknowledged(folder.path).length - before;
  await load.end();
  await server.end('SIGTERM');
  const result = await compareWithStore(databasePath, folder.path, teams);
  return { acknowledgedLater, status: post.status, ready: ready.status, page: page.status, result };
}

/** Answers from before the fault may be logged a little later. In the control the load goes on, and this gives up. */
async function settle(folder: string): Promise<void> {
  const isStill = async () => {
    const before = readAcknowledged(folder).length;
    await sleep(700);
    return readAcknowledged(folder).length === before;
  };
  await eventually('a log that no longer grows', 4000, isStill, 0).catch(() => {});
}
