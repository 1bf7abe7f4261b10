import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  change,
  damage,
  inflict,
  middle,
  newCleanStore,
  repairable,
  report,
  rows,
  total,
} from './verify-lab.ts';

const { copyOfClean } = await newCleanStore();

describe('verify --repair', { concurrency: 3 }, () => {
  for (const [name, [harm]] of Object.entries(repairable)) {
    test(`repairs ${name}`, async () => {
      const tool = copyOfClean();
      inflict(tool, harm);
      assert.deepEqual(await report(tool, '--repair'), {
        ok: true,
        teams: 2,
        traces: 2 * rows,
        differences: [],
        repaired: ['alpha'],
      });
      assert.equal((await report(tool)).ok, true);
    });
  }

  test('says in words what it has repaired', async () => {
    const tool = copyOfClean();
    inflict(tool, `delete from rollups where ${total}`);
    assert.deepEqual(await tool.run('verify', '--repair'), {
      code: 0,
      stdout:
        'team alpha: the sums were wrong and have been repaired\n' +
        'Everything is correct: 2 teams, 120 traces.\n',
      stderr: '',
    });
  });

  test('keeps the sums of a team if traces are missing', async () => {
    const tool = copyOfClean();
    damage(tool, (db) => change(db, `delete from traces where ${middle}`));
    const before = await report(tool);
    const { ok, differences, repaired } = await report(tool, '--repair');
    assert.deepEqual([ok, repaired], [false, []]);
    assert.deepEqual(differences, before.differences);
  });

  test('repairs the sums and still lists traces with damaged payloads', async () => {
    const tool = copyOfClean();
    inflict(tool, `update rollups set calls = calls + 1 where ${total}`);
    inflict(tool, `update trace_payloads set checksum = checksum + 1 where ${middle}`);
    const { ok, differences, repaired } = await report(tool, '--repair');
    assert.deepEqual([ok, repaired, differences.length], [false, ['alpha'], 1]);
    assert.match(differences[0] ?? '', /^team alpha: trace 30 .*: damaged input, output/);
  });

  test('changes nothing in a correct store', async () => {
    const tool = copyOfClean();
    const { ok, repaired } = await report(tool, '--repair');
    assert.deepEqual([ok, repaired], [true, []]);
    damage(tool, (db) => {
      const row = db.prepare('select max(generation) as newest from roll_marks').get();
      assert.equal(row?.['newest'], 1);
    });
  });
});
