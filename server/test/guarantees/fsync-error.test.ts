import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawnServer } from '../support/cli.ts';
import type { HowToRun } from '../support/cli.ts';
import { needProgram } from '../support/debian.ts';
import { temporaryFolder } from '../support/service.ts';
import { brokenCopy } from './broken-copy.ts';
import { balance, makeTeams, readLedger, startLoad } from './crash-lab.ts';
import { skipUnlessCi } from '../support/skip.ts';

const clients = 16;

/** The writer's n-th sync fails with EIO, once. Every later one succeeds, though nobody knows what became of the lost pages. */
const failOnce = (n: number, syncs: string): readonly string[] => [
  'strace',
  // As a process beside it, so that signals reach the server and not the tracer.
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

test('after a failed sync nothing is acknowledged any more, and a restart brings everything back', async (t) => {
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

async function failUnderLoad(t: TestContext, n: number, how: HowToRun) {
  const folder = temporaryFolder();
  t.after(folder.remove);
  const databasePath = join(folder.path, 'fsync.db');
  const teams = await makeTeams(databasePath, 2);
  const key = teams[0]?.key ?? '';
  const flags = ['--database', `sqlite:${databasePath}`, '--log-level', 'silent'];
  const syncs = join(folder.path, 'syncs.txt');
  const server = await spawnServer(flags, {}, { ...how, wrapper: failOnce(n, syncs) });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const load = startLoad(server.url, folder.path, clients, 1, teams);
  await load.begun();
  const hasFailed = () => readFileSync(syncs, 'utf8').includes('(INJECTED)');
  assert.ok(await within(30_000, hasFailed), 'no sync has failed');
  await untilStill(folder.path);
  const before = readLedger(folder.path).length;
  const post = await fetch(`${server.url}/traces`, {
    method: 'POST',
    headers,
    body: '{"model":"late"}',
  });
  const ready = await fetch(`${server.url}/readyz`);
  const page = await fetch(`${server.url}/traces?limit=1`, { headers });
  await within(1000, () => readLedger(folder.path).length > before);
  const acknowledgedLater = readLedger(folder.path).length - before;
  await load.end();
  await server.end('SIGTERM');
  const result = await balance(databasePath, folder.path, teams);
  return { acknowledgedLater, status: post.status, ready: ready.status, page: page.status, result };
}

/** Whether it came true in that time. */
async function within(ms: number, isTrue: () => boolean): Promise<boolean> {
  const deadline = performance.now() + ms;
  while (!isTrue()) {
    if (performance.now() > deadline) return false;
    await sleep(20);
  }
  return true;
}

/** What was acknowledged before the fault may reach the clients a little later. A load that goes on is waited for in vain. */
async function untilStill(folder: string): Promise<void> {
  for (let waits = 0; waits < 10; waits++) {
    const before = readLedger(folder).length;
    await sleep(200);
    if (readLedger(folder).length === before) return;
  }
}
