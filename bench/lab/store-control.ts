/**
 * The control D: the same rows through the real store in this process, 1,000 per transaction, with each
 * commit synced, without HTTP. Arguments: a database, and the number of seconds. Prints rows per second.
 */
import { draftTrace } from '../../server/src/core/trace.ts';
import { openStore } from '../../server/src/store/open-store.ts';
import { smallPayloads, traceBodies } from './bodies.ts';

const rowsOfTransaction = 1_000;
const [, , path = '', seconds = '1'] = process.argv;
const store = await openStore(
  { kind: 'sqlite', path },
  { clock: { kind: 'system' }, role: 'tool' },
);
const { team } = await store.ensureTeam('bench', Date.now() * 1000);
const drafts = traceBodies(rowsOfTransaction, smallPayloads).map((body) =>
  draftTrace(JSON.parse(body)),
);

async function write(): Promise<void> {
  const [outcome] = await store.append([{ teamId: team.id, drafts }]);
  if (outcome?.kind !== 'stored') throw new Error('the store rejected the rows');
}

for (let i = 0; i < 3; i++) await write();
const startMs = performance.now();
let rows = 0;
while (performance.now() - startMs < Number(seconds) * 1000) {
  await write();
  rows += rowsOfTransaction;
}
const perSecond = rows / ((performance.now() - startMs) / 1000);
await store.close();
process.stdout.write(`${JSON.stringify({ perSecond })}\n`);
