import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CountsByName, Distribution } from '../../src/metrics/counts.ts';
import { Recorder } from '../../src/metrics/recorder.ts';

test('a distribution counts each value up to its bound, which is included', () => {
  const distribution = new Distribution([1, 10]);
  for (const value of [0, 1, 1.5, 10, 11, 1e9]) distribution.observe(value);
  assert.deepEqual(distribution.cumulative, [2, 4, 6]);
  assert.equal(distribution.sum, 0 + 1 + 1.5 + 10 + 11 + 1e9);
});

test('counts are kept by name', () => {
  const counts = new CountsByName();
  counts.add('a');
  counts.add('b', 3);
  counts.add('a');
  assert.deepEqual(counts.entries, [
    ['a', 2],
    ['b', 3],
  ]);
});

test('the tails are those of the last report and what was committed since', () => {
  const recorder = new Recorder(null);
  recorder.noteRoll({ tails: { hot: 10, wide: 50 }, roll: null });
  recorder.noteCommit({ rows: 5, bytes: 100, tookMs: 1 });
  assert.deepEqual(recorder.tails, { hot: 15, wide: 55 });
  recorder.noteRoll({ tails: { hot: 0, wide: 55 }, roll: { speed: 'hot', rows: 15, tookMs: 2 } });
  assert.deepEqual(recorder.tails, { hot: 0, wide: 55 });
  assert.equal(recorder.rolls.hot.rows, 15);
});
