/**
 * A separate program to be killed: writes traces without pause into a SQLite file, and rolls them up after each commit.
 *
 *   node roll-load.ts FILE TEAM SEED
 *
 * Each line of its standard output is the number of traces that were acknowledged so far.
 */
import { openStore } from '../../src/store/open-store.ts';
import { randomDraft } from '../support/random-drafts.ts';
import { seededRandom } from '../support/seeded-random.ts';

const [path = '', teamId = '', seed = ''] = process.argv.slice(2);
const random = seededRandom(Number(seed));
const store = await openStore(
  { kind: 'sqlite', path },
  { clock: { kind: 'system' }, role: 'server', rollTailRows: 1 },
);
for (let acknowledged = 0; ;) {
  const drafts = Array.from({ length: 1 + Math.floor(random() * 20) }, () =>
    randomDraft(random, Date.now() * 1000),
  );
  const [outcome] = await store.append([{ teamId, drafts }]);
  if (outcome?.kind !== 'stored') throw new Error('a write failed');
  acknowledged += drafts.length;
  process.stdout.write(`${acknowledged}\n`);
}
