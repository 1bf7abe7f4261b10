import assert from 'node:assert/strict';
import { test } from 'node:test';
import { calendarOf } from '../../src/core/calendar.ts';
import { RollupFold } from '../../src/core/rollup.ts';
import { deltasOf } from '../../src/store/rollup-rows.ts';
import type { RollupDelta } from '../../src/store/rollup-rows.ts';
import { SumsFile, SumsInMemory } from '../../src/tools/recounted-sums.ts';
import type { RecountedSums } from '../../src/tools/recounted-sums.ts';
import { randomDraft } from '../support/random-drafts.ts';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';

test('sums that were saved to a file in slices are those of all traces in memory', (t) => {
  const seed = chooseSeed();
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const createdAtUs = Date.UTC(2026, 0, 1) * 1000;
  const slices = Array.from({ length: 3 }, () =>
    Array.from({ length: 200 }, () => randomDraft(random, createdAtUs)),
  );
  const deltasIn = (drafts: (typeof slices)[number]): RollupDelta[] => {
    const fold = new RollupFold('wide', calendarOf('Asia/Kathmandu'));
    for (const draft of drafts) fold.addNew(draft, createdAtUs);
    return deltasOf(fold.rollups());
  };
  const all = deltasIn(slices.flat());
  const inMemory = new SumsInMemory(all);
  using inFile = new SumsFile();
  for (const slice of slices) inFile.add(deltasIn(slice));

  const taken = all.filter((_, i) => i % 3 !== 0);
  for (const delta of taken) {
    const sums = inMemory.take(delta);
    assert.equal(sums?.calls, delta.measures.calls);
    assert.deepEqual(bytesOf(inFile.take(delta)), bytesOf(sums));
  }
  for (const sums of [inMemory, inFile] as RecountedSums[]) {
    const [first] = taken;
    assert.ok(first);
    assert.equal(sums.take(first), undefined, 'taken before');
    const rest = Array.from(sums.rest(), ({ set, grain, bucket, group }) =>
      JSON.stringify([set, grain, bucket, group]),
    );
    const wanted = all
      .filter((_, i) => i % 3 === 0)
      .map(({ set, grain, bucket, group }) => JSON.stringify([set, grain, bucket, group]));
    assert.deepEqual(rest.toSorted(), wanted.toSorted());
  }
});

function bytesOf(sums: ReturnType<RecountedSums['take']>) {
  return (
    sums && [
      sums.calls,
      Buffer.from(sums.sums).toString('hex'),
      Buffer.from(sums.latencies).toString('hex'),
    ]
  );
}
