import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CountsByName, Distribution } from '../../src/metrics/counts.ts';
import { Recorder } from '../../src/metrics/recorder.ts';
import { openTeamNames } from '../../src/metrics/team-names.ts';

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
  recorder.noteRoll({ tailRows: 50, roll: null });
  recorder.noteCommit({ rows: 5, bytes: 100, tookMs: 1 });
  assert.equal(recorder.tailRows, 55);
  recorder.noteRoll({ tailRows: 40, roll: { rows: 15, tookMs: 2 } });
  assert.equal(recorder.tailRows, 40);
  assert.equal(recorder.rolls.rows, 15);
});

test('a name of a team that never arrives is not waited for, and one that cannot be read is asked for again', async (t) => {
  const alive = setInterval(() => {}, 1_000);
  t.after(() => clearInterval(alive));
  const stuck = openTeamNames(() => new Promise(() => {}), 1);
  for (let i = 0; i < 2; i++) assert.deepEqual([...(await stuck(['a']))], []);

  const asked: string[] = [];
  let isBroken = true;
  const namesOf = openTeamNames(async (id) => {
    asked.push(id);
    if (isBroken && id === 'a') throw new Error('the database is away');
    return `team ${id}`;
  }, 60_000);
  assert.deepEqual([...(await namesOf(['a', 'b']))], [['b', 'team b']]);
  isBroken = false;
  const names = await namesOf(['a', 'b']);
  assert.deepEqual([names.get('a'), names.get('b')], ['team a', 'team b']);
  assert.deepEqual(asked, ['a', 'b', 'a'], 'a known name is not asked for again');
});
