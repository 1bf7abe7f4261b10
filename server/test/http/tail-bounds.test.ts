import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDatabase } from '../../src/config.ts';
import { limits } from '../../src/limits.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { StoreOptions } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { randomDraft } from '../support/random-drafts.ts';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';
import { temporaryFolder } from '../support/service.ts';
import { databaseIn } from '../support/store-place.ts';
import { assertTallies } from '../support/tally-answers.ts';

const clock = { kind: 'system' } as const;
const batches = 6;
/** In the end there are more traces than a read adds up on the main thread. */
const batchRows = Math.ceil(limits.shortTailRowsMax / (batches - 1));

const bounds = (rows: number) => ({ rollTailRows: rows });
const settings: Record<string, Partial<StoreOptions>> = {
  'tail bounds of 1': bounds(1),
  'tail bounds of 1,000,000': bounds(1_000_000),
  'a tail that is never rolled up': { rolling: 'manual' },
};

for (const [what, options] of Object.entries(settings)) {
  test(`every answer is complete at every moment with ${what}`, async (t) => {
    const seed = chooseSeed();
    const random = seededRandom(seed);
    t.diagnostic(`seed ${seed}`);
    const folder = temporaryFolder();
    const database = readDatabase({ database: await databaseIn(folder.path) }, {});
    const store = await openStore(database, { clock, role: 'server', ...options });
    t.after(async () => {
      await store.close();
      folder.remove();
    });
    const { team } = await store.ensureTeam('bounds', 1, 'Asia/Kathmandu');
    const traces = batches * batchRows;
    for (let batch = 0; batch < batches; batch++) {
      const drafts = Array.from({ length: batchRows }, () =>
        randomDraft(random, Date.now() * 1000),
      );
      const [outcome] = await store.append([{ teamId: team.id, drafts }]);
      assert.equal(outcome?.kind, 'stored');
      await assertTallies(store, team.id);
    }
    if (options.rolling === 'manual') {
      assert.equal((await store.marks(team.id)).seq, 0);
    } else {
      await eventually('everything is rolled up', 120_000, async () => {
        return (await store.marks(team.id)).seq === traces;
      });
    }
    await assertTallies(store, team.id);
    assert.deepEqual(await verifyTeam(store, team.id), { traces, differences: [] });
  });
}
