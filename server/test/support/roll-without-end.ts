/**
 * A separate program: rolls up a few traces of one team after the other, beside the servers of a store.
 *
 *   node roll-without-end.ts DATABASE TEAM…
 *
 * It ends on SIGTERM, and by itself after three minutes. Its last line on standard output is the number of rolls that had something to do.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readDatabase } from '../../src/config.ts';
import { Failure } from '../../src/errors.ts';
import { openStore } from '../../src/store/open-store.ts';

const [database = '', ...teamIds] = process.argv.slice(2);
const store = await openStore(readDatabase({ database }, {}), {
  clock: { kind: 'system' },
  role: 'tool',
  rolling: 'manual',
});
let isStopping = false;
process.once('SIGTERM', () => (isStopping = true));
let rolls = 0;
const untilMs = performance.now() + 180_000;
while (!isStopping && performance.now() < untilMs) {
  // Rolling may do all of its work without a turn of the event loop, in which signals arrive.
  await nextTurn();
  for (const teamId of teamIds) {
    if ((await rollOnce(teamId)) > 0) rolls += 1;
  }
}
await store.close();

/** Several of these programs without a pause may keep one of them from the lock of the rollup file for seconds. */
async function rollOnce(teamId: string): Promise<number> {
  try {
    return await store.roll(teamId, 5);
  } catch (error) {
    if (error instanceof Failure && error.code === 'store_unavailable') return 0;
    throw error;
  }
}

process.stdout.write(`${rolls}\n`);
