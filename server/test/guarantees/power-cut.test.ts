import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';
import { spawnServer } from '../support/cli.ts';
import type { HowToRun } from '../support/cli.ts';
import { temporaryFolder } from '../support/service.ts';
import { brokenCopy } from './broken-copy.ts';
import { compareWithStore, makeTeams, rounds, startLoad } from './crash-lab.ts';
import type { Comparison } from './crash-lab.ts';
import { makeLoopDisk } from './loop-disk.ts';
import { skipUnlessCi } from '../support/skip.ts';

const clients = 32;

test('a power cut under load loses no acknowledged trace', async (t) => {
  const seed = chooseSeed();
  const random = seededRandom(seed);
  t.diagnostic(`seed ${seed}`);
  let acknowledged = 0;
  const count = rounds(3);
  for (let round = 1; round <= count; round++) {
    const result = await cutPowerUnderLoad(t, 200 + random() * 600, {});
    if (result === null) return;
    acknowledged += result.acknowledged;
    assert.deepEqual(result.lost, [], `round ${round}, seed ${seed}`);
    assert.deepEqual(result.twice, [], `round ${round}, seed ${seed}`);
    assert.ok(result.acknowledged > 0);
  }
  t.diagnostic(`${count} power cuts, ${acknowledged} acknowledged, 0 lost, 0 twice`);
});

test('the control without a sync at each commit does lose acknowledged traces', async (t) => {
  const folder = temporaryFolder();
  const launcher = brokenCopy(
    folder.path,
    'store/sqlite/connection.ts',
    'pragma synchronous = full',
    'pragma synchronous = normal',
  );
  // A cut right after a checkpoint finds everything on the disk, so there are several tries.
  let [lost, acknowledged, cuts] = [0, 0, 0];
  while (lost === 0 && cuts < 10) {
    const result = await cutPowerUnderLoad(t, 400 + cuts * 50, { launcher });
    if (result === null) break;
    cuts += 1;
    lost += result.lost.length;
    acknowledged += result.acknowledged;
  }
  folder.remove();
  if (cuts === 0) return;
  t.diagnostic(`${lost} of ${acknowledged} acknowledged were lost in ${cuts} cuts`);
  assert.ok(lost > 0, 'the simulated power cut loses nothing, so the test above proves nothing');
});

/** Compares what was acknowledged with what is on the disk afterwards. Null, and a skipped test, if this machine cannot do it. */
async function cutPowerUnderLoad(
  t: TestContext,
  afterMs: number,
  how: HowToRun,
): Promise<Comparison | null> {
  const folder = temporaryFolder();
  const disk = makeLoopDisk(folder.path, 256);
  if ('reason' in disk) {
    folder.remove();
    skipUnlessCi(t, disk.reason);
    return null;
  }
  try {
    const databasePath = join(disk.path, 'power.db');
    const teams = await makeTeams(databasePath, 2);
    const flags = ['--database', `sqlite:${databasePath}`, '--log-level', 'silent'];
    const server = await spawnServer(flags, {}, how);
    // The request log is on another disk: it survives.
    const load = startLoad(server.url, folder.path, clients, 1, teams);
    await load.begun();
    await sleep(afterMs);
    // A power cut stops the machine and the disk at one instant. So the process is stopped first: a sync that is under way while the file
    // system goes down may report success, which a real power cut would not let the server acknowledge.
    server.child.kill('SIGSTOP');
    disk.cutPower();
    await server.end('SIGKILL');
    await load.end();
    disk.remount();
    return await compareWithStore(databasePath, folder.path, teams);
  } finally {
    disk.remove();
    folder.remove();
  }
}
