import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { storeInHalves, storeInHalvesAsync } from '../../src/store/bisection.ts';
import type { BatchResult } from '../../src/store/bisection.ts';
import type { FailedWrite, WriteOutcome } from '../../src/store/trace-writer.ts';

const stored = (id: number): WriteOutcome => ({
  kind: 'stored',
  stamps: [{ id: String(id), createdAtUs: id }],
});
const bad: FailedWrite = { kind: 'failed', code: 'internal', reason: 'bad' };

/** A store that fails every batch with a negative number in it. */
function attemptOf(batches: number[][]): (batch: readonly number[]) => BatchResult {
  return (batch) => {
    batches.push([...batch]);
    return batch.some((id) => id < 0)
      ? { ...bad, isOfStore: false }
      : { kind: 'stored', outcomes: batch.map(stored) };
  };
}

test('exactly the bad writes fail, the others are stored once and in order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: -3, max: 20 }), { minLength: 1 }), async (ids) => {
      const expected = ids.map((id) => (id < 0 ? bad : stored(id)));
      const batches: number[][] = [];
      assert.deepEqual(storeInHalves(ids, attemptOf(batches)), expected);
      const kept = batches.filter((batch) => batch.every((id) => id >= 0)).flat();
      assert.deepEqual(
        kept,
        ids.filter((id) => id >= 0),
      );
      const later = attemptOf([]);
      assert.deepEqual(await storeInHalvesAsync(ids, async (batch) => later(batch)), expected);
    }),
  );
});

test('one bad write among a thousand is found in a few steps', () => {
  const ids = Array.from({ length: 1000 }, (_, i) => (i === 617 ? -1 : i));
  const batches: number[][] = [];
  storeInHalves(ids, attemptOf(batches));
  assert.ok(batches.length <= 2 * Math.ceil(Math.log2(1000)) + 1, String(batches.length));
});

test('if the store itself fails, there is no retry', () => {
  let attempts = 0;
  const outcomes = storeInHalves([1, 2, 3], () => {
    attempts += 1;
    return { kind: 'failed', code: 'disk_full', reason: 'full', isOfStore: true };
  });
  assert.equal(attempts, 1);
  assert.deepEqual(
    outcomes.map((outcome) => outcome.kind === 'failed' && outcome.code),
    ['disk_full', 'disk_full', 'disk_full'],
  );
});
