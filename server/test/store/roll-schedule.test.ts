import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { limits } from '../../src/limits.ts';
import { RollSchedule } from '../../src/store/roll-schedule.ts';
import type { TeamTail } from '../../src/store/roll-schedule.ts';

const rowsMin = 100;

function tail(no: number, rows: number, hasWork = false): TeamTail {
  return { teamId: `team ${no}`, rows, hasWork };
}

describe('the schedule of rolls', () => {
  test('a long tail is due at once, a short one when it has waited', () => {
    const schedule = new RollSchedule(rowsMin);
    schedule.note(tail(1, rowsMin - 1), 0);
    assert.equal(schedule.next(limits.rollAfterMsMax - 1), null);
    assert.equal(schedule.next(limits.rollAfterMsMax)?.teamId, 'team 1');
    schedule.note(tail(2, rowsMin), 0);
    assert.equal(schedule.next(0)?.teamId, 'team 2');
  });

  test('a tail that grows waits no longer than it would otherwise', () => {
    const schedule = new RollSchedule(rowsMin);
    for (let ms = 0; ms < limits.rollAfterMsMax; ms += 500)
      schedule.note(tail(1, 1 + ms / 500), ms);
    assert.equal(schedule.next(limits.rollAfterMsMax)?.rows, limits.rollAfterMsMax / 500);
  });

  test('a team without new traces is due only if something else is to be done', () => {
    const schedule = new RollSchedule(rowsMin);
    schedule.note(tail(1, 0), 0);
    assert.equal(schedule.next(1e9), null);
    schedule.note(tail(1, 0, true), 0);
    assert.equal(schedule.next(0)?.teamId, 'team 1');
    schedule.note(tail(1, 0), 0);
    assert.equal(schedule.next(1e9), null);
  });

  test('teams take turns, however long the tail of one of them is', () => {
    const schedule = new RollSchedule(rowsMin);
    for (const teamNo of [1, 2, 3]) schedule.note(tail(teamNo, 1e6), 0);
    const order = Array.from({ length: 6 }, (_, ms) => {
      const due = schedule.next(ms) ?? assert.fail('none is due');
      schedule.noteRolled({ ...due, rows: 1e6 }, ms);
      return due.teamId;
    });
    const turn = ['team 1', 'team 2', 'team 3'];
    assert.deepEqual(order, [...turn, ...turn]);
  });

  test('what is left after a roll waits anew', () => {
    const schedule = new RollSchedule(rowsMin);
    schedule.note(tail(1, rowsMin), 0);
    schedule.noteRolled(tail(1, 1), 1_000);
    assert.equal(schedule.next(limits.rollAfterMsMax), null);
    assert.equal(schedule.next(1_000 + limits.rollAfterMsMax)?.rows, 1);
  });

  test('after each failure a team waits twice as long, up to a bound, and others go on', () => {
    const schedule = new RollSchedule(rowsMin);
    schedule.note(tail(1, rowsMin), 0);
    let ms = 0;
    for (let failures = 0; failures < 12; failures++) {
      assert.equal(schedule.next(ms)?.teamId, 'team 1');
      schedule.noteFailed('team 1', ms);
      const pauseMs = Math.min(limits.rollRetryMsMin * 2 ** failures, limits.rollRetryMsMax);
      assert.equal(schedule.next(ms + pauseMs - 1), null);
      // New traces do not shorten the pause.
      schedule.note(tail(1, 2 * rowsMin), ms);
      assert.equal(schedule.next(ms + pauseMs - 1), null);
      ms += pauseMs;
    }
    schedule.noteFailed('team 1', ms);
    schedule.note(tail(2, rowsMin), ms);
    assert.equal(schedule.next(ms)?.teamId, 'team 2');
  });

  test('after a roll that succeeds, the next failure waits as long as the first one', () => {
    const schedule = new RollSchedule(rowsMin);
    schedule.note(tail(1, rowsMin), 0);
    for (let i = 0; i < 5; i++) schedule.noteFailed('team 1', 0);
    schedule.noteRolled(tail(1, rowsMin), 0);
    schedule.noteFailed('team 1', 0);
    assert.equal(schedule.next(limits.rollRetryMsMin)?.teamId, 'team 1');
  });

  test('the tails of all teams are added up', () => {
    const schedule = new RollSchedule(rowsMin);
    schedule.note(tail(1, 5), 0);
    schedule.note(tail(2, 7), 0);
    schedule.note(tail(1, 6), 0);
    assert.equal(schedule.tailRows, 13);
    schedule.noteRolled(tail(2, 0), 0);
    assert.equal(schedule.tailRows, 6);
  });
});
