/** Rebuilds the rollups of a team and dies in the middle: `node rebuild-until-killed.ts PATH TEAM ZONE STEPS`. */
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';

const [path = '', teamId = '', zone = '', steps = '1'] = process.argv.slice(2);
const store = await openSqliteStore({ path, clock: { kind: 'system' }, role: 'tool' });
let seen = 0;
await store.rebuild(teamId, zone, () => {
  seen += 1;
  if (seen === Number(steps)) process.kill(process.pid, 'SIGKILL');
});
await store.close();
