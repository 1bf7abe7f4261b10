/**
 * A separate program to be killed: writes three traces at a time into a SQLite store, rolls them up after each commit, and moves costs between
 * stored traces meanwhile.
 *
 *   node write-and-swap.ts FILE TEAM SEED
 *
 * Each line of its standard output is the number of traces that were acknowledged so far.
 */
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { draftTrace } from '../../src/core/trace.ts';
import { openStore } from '../../src/store/open-store.ts';
import { addSwapRun, meanCost, swapCosts } from '../support/cost-swaps.ts';
import { seededRandom } from '../support/seeded-random.ts';

const [path = '', teamId = '', seed = ''] = process.argv.slice(2);
const random = seededRandom(Number(seed));
const store = await openStore(
  { kind: 'sqlite', path },
  { clock: { kind: 'system' }, role: 'server', rollTailRows: 1 },
);
const run = await addSwapRun(store, teamId, `run ${seed}`);
let acknowledged = 0;

async function write(): Promise<never> {
  for (;;) {
    const drafts = Array.from({ length: 3 }, () =>
      draftTrace({
        model: `m${Math.floor(random() * 3)}`,
        user_identifier: `u${Math.floor(random() * 50)}`,
        latency_ms: Math.floor(random() * 1_000),
        cost_usd: meanCost,
      }),
    );
    const [outcome] = await store.append([{ teamId, drafts }]);
    if (outcome?.kind !== 'stored') throw new Error('a write failed');
    acknowledged += drafts.length;
    process.stdout.write(`${acknowledged}\n`);
    await nextTurn();
  }
}

/** With pauses, as `reprice` has them: without any, writes hardly ever get the lock of the file. */
async function swap(): Promise<never> {
  for (;;) {
    const startMs = performance.now();
    if (acknowledged > 0) await swapCosts(store, run, Math.floor(random() * (acknowledged + 1)));
    await delay(performance.now() - startMs + 1);
  }
}

await Promise.all([write(), swap()]);
