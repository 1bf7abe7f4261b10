/**
 * A separate program: rolls up a few traces of one team after the other, beside the servers of a store.
 *
 *   node roll-without-end.ts DATABASE TEAM…
 *
 * It ends on SIGTERM, and by itself after three minutes. Its last line on standard output is the number of rolls that had something to do.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readDatabase } from '../../src/config.ts';
import { openStore } from '../../src/store/open-store.ts';
import { rollSpeeds } from './roll-up.ts';

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
    for (const speed of rollSpeeds) {
      if ((await store.roll(teamId, speed, 5)) > 0) rolls += 1;
    }
  }
}
await store.close();
process.stdout.write(`${rolls}\n`);
