/** Opens an old database and dies in the middle of its upgrade: `node postgres-upgrade-until-killed.ts URL STEPS`. */
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';

const [url = '', steps = '1'] = process.argv.slice(2);
let seen = 0;
const store = await openPostgresStore({
  url,
  clock: { kind: 'system' },
  role: 'tool',
  onUpgrade() {
    seen += 1;
    if (seen === Number(steps)) process.kill(process.pid, 'SIGKILL');
  },
});
await store.close();
