/** Opens an old file and dies in the middle of its upgrade: `node upgrade-until-killed.ts PATH STEPS`. */
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';

const [path = '', steps = '1'] = process.argv.slice(2);
let seen = 0;
const store = await openSqliteStore({
  path,
  clock: { kind: 'system' },
  role: 'tool',
  onUpgrade() {
    seen += 1;
    if (seen === Number(steps)) process.kill(process.pid, 'SIGKILL');
  },
});
await store.close();
