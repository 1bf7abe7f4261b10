import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { rollUp } from '../support/roll-up.ts';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';
import { temporaryFolder } from '../support/service.ts';
import { assertTallies } from '../support/tally-answers.ts';
import { rounds, withTool } from './crash-lab.ts';

/** Starts the program, lets it write and roll for a random time, and kills it. Returns how many traces it acknowledged. */
async function writeUntilKilled(
  path: string,
  teamId: string,
  random: () => number,
): Promise<number> {
  const args = ['roll-load.ts', path, teamId, String(Math.floor(random() * 2 ** 31))];
  const child = spawn(process.execPath, args, {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let stdout = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  const ended = new Promise<NodeJS.Signals | null>((resolve) =>
    child.once('close', (_code, signal) => resolve(signal)),
  );
  try {
    await eventually('an acknowledged trace', 120_000, () => stdout.includes('\n'), 5);
    // The moment is random by design. The roller looks for new traces twice per second.
    await sleep(random() * 1_500);
  } finally {
    child.kill('SIGKILL');
  }
  assert.equal(await ended, 'SIGKILL', 'the program ended before it was killed');
  return Number(stdout.split('\n').at(-2));
}

test('killing the process while it rolls up traces loses nothing and changes no answer', async (t) => {
  const seed = chooseSeed();
  const random = seededRandom(seed);
  t.diagnostic(`seed ${seed}`);
  const folder = temporaryFolder();
  t.after(() => folder.remove());
  const path = join(folder.path, 'rolling.db');
  const teamId = await withTool(path, async (store) => {
    const { team } = await store.ensureTeam('rolling', 1, 'Asia/Kathmandu');
    return team.id;
  });
  let acknowledged = 0;
  let stored = 0;
  let killedBehind = 0;
  let lastRolledSeq = 0;
  // On a slow machine nothing may be rolled up before the first kills.
  const isSeen = (): boolean => killedBehind > 0 && lastRolledSeq > 0;
  for (let round = 1; round <= rounds(3) || (round <= 30 && !isSeen()); round++) {
    acknowledged += await writeUntilKilled(path, teamId, random);
    await withTool(path, async (store) => {
      const where = `round ${round}, seed ${seed}`;
      const { seq } = await store.marks(teamId);
      await assertTallies(store, teamId);
      const { traces, differences } = await verifyTeam(store, teamId);
      assert.deepEqual(differences, [], where);
      assert.ok(traces >= acknowledged, `${traces} of ${acknowledged} are stored, ${where}`);
      lastRolledSeq = seq;
      if (seq < traces) killedBehind += 1;
      acknowledged = stored = traces;
    });
  }
  assert.ok(killedBehind > 0, 'everything was rolled up before each kill');
  assert.ok(lastRolledSeq > 0, 'nothing was rolled up');
  await withTool(path, async (store) => {
    await rollUp(store, [teamId]);
    assert.equal((await store.marks(teamId)).seq, stored);
    await assertTallies(store, teamId);
    assert.deepEqual(await verifyTeam(store, teamId), { traces: stored, differences: [] });
  });
  t.diagnostic(`${stored} traces, ${killedBehind} kills with a tail`);
});
