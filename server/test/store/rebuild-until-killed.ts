/**
 * Rebuilds the rollups of a team and dies in the middle: `node rebuild-until-killed.ts DATABASE TEAM ZONE WHEN`. WHEN is a number of
 * steps, or `switched`: the new rollups are active, and the old ones are not all removed.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readDatabase } from '../../src/config.ts';
import { openStore } from '../../src/store/open-store.ts';

const [database = '', teamId = '', zone = '', when = '1'] = process.argv.slice(2);
const store = await openStore(readDatabase({ database }), {
  clock: { kind: 'system' },
  role: 'tool',
});
const die = (): void => void process.kill(process.pid, 'SIGKILL');
let seen = 0;
let isDone = false;
const rebuilt = store
  .rebuild(teamId, zone, () => {
    seen += 1;
    if (seen === Number(when)) die();
  })
  .finally(() => (isDone = true));
while (when === 'switched' && !isDone) {
  if ((await store.timeZone(teamId)) === zone) die();
  await nextTurn();
}
await rebuilt;
await store.close();
