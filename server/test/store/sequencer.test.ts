import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { uuidMs, uuidV7 } from '../../src/core/uuid.ts';
import { limits } from '../../src/limits.ts';
import { Sequencer, emptyCounter } from '../../src/store/sequencer.ts';

const jumpUs = limits.clockAheadUsMax;

test('numbers are dense, and times strictly increase while the clock behaves', () => {
  const steps = fc.array(fc.integer({ min: -jumpUs / 2, max: 1000 }), { maxLength: 40 });
  fc.assert(
    fc.property(steps, (clockSteps) => {
      const sequencer = new Sequencer('t', emptyCounter);
      const startUs = 1e15;
      let lastUs = 0;
      for (const [i, step] of clockSteps.entries()) {
        const { seq, createdAtUs, id } = sequencer.next(startUs + step, undefined);
        assert.equal(seq, i + 1);
        assert.ok(createdAtUs > lastUs);
        assert.equal(uuidMs(id), Math.floor(createdAtUs / 1000));
        lastUs = createdAtUs;
      }
      assert.equal(sequencer.jump, null);
    }),
  );
});

test('if the last trace is too far ahead, the clock wins and the jump is reported', () => {
  const lastUs = 2e15;
  const wallUs = lastUs - jumpUs - 1;
  const sequencer = new Sequencer('t', { firstSeq: 1, lastSeq: 9, lastUs });
  assert.equal(sequencer.next(wallUs, undefined).createdAtUs, wallUs);
  assert.deepEqual(sequencer.jump, { teamId: 't', aheadUs: jumpUs + 1 });
  assert.deepEqual(sequencer.counter, { firstSeq: 1, lastSeq: 10, lastUs: wallUs });
});

test('times that a caller supplies skip the clock check but never run backwards', () => {
  const sequencer = new Sequencer('t', emptyCounter);
  const times = [5, 3, 3, 8].map((givenUs) => sequencer.next(1e15, givenUs).createdAtUs);
  assert.deepEqual(times, [5, 6, 7, 8]);
  assert.equal(sequencer.jump, null);
});

test('traces of another store keep their numbers, and the first one begins the sequence', () => {
  const sequencer = new Sequencer('t', emptyCounter);
  sequencer.adopt({ id: uuidV7(1), seq: 41, createdAtUs: 7 });
  sequencer.adopt({ id: uuidV7(1), seq: 42, createdAtUs: 9 });
  assert.deepEqual(sequencer.counter, { firstSeq: 41, lastSeq: 42, lastUs: 9 });
});
