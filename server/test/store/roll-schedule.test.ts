import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../src/limits.ts';
import { RollSize } from '../../src/store/roll-size.ts';
import { RollSchedule } from '../../src/store/sqlite/roll-schedule.ts';

const bounds = { hotTailRows: 100, wideTailRows: 1_000 };
const busyMs = 0;
const quietMs = limits.hotRollIdleMs;
const longQuietMs = limits.wideRollIdleMs;

function team(teamNo: number, lastSeq: number) {
  return { teamNo, teamId: `team ${teamNo}`, firstSeq: 1, lastSeq };
}

function scheduleWith(...teams: { tail: number; rolled?: { hot: number; wide: number } }[]) {
  const schedule = new RollSchedule(bounds);
  for (const [i, { tail, rolled = { hot: 0, wide: 0 } }] of teams.entries()) {
    schedule.noteCommit(team(i + 1, tail), () => ({ ...rolled }));
  }
  return schedule;
}

function dueOf(schedule: RollSchedule, idleMs: number, nowMs = 0) {
  const due = schedule.next(nowMs, idleMs);
  return due && [due.team.teamNo, due.speed];
}

test('while writes go on, only tails over their bound are rolled up', () => {
  assert.equal(dueOf(scheduleWith({ tail: 99 }), busyMs), null);
  assert.deepEqual(dueOf(scheduleWith({ tail: 99 }, { tail: 100 }), busyMs), [2, 'hot']);
  const hotDone = { hot: 1_000, wide: 0 };
  assert.equal(dueOf(scheduleWith({ tail: 999, rolled: hotDone }), busyMs), null);
  assert.deepEqual(dueOf(scheduleWith({ tail: 1_000, rolled: hotDone }), busyMs), [1, 'wide']);
});

test('a commit says whether it made a roll due', () => {
  const schedule = new RollSchedule(bounds);
  const rolled = () => ({ hot: 0, wide: 0 });
  assert.equal(schedule.noteCommit(team(1, 99), rolled), false);
  assert.equal(schedule.noteCommit(team(1, 100), rolled), true);
});

test('when nothing was written for a while every tail is rolled up, the small sets first', () => {
  assert.deepEqual(dueOf(scheduleWith({ tail: 1 }), quietMs), [1, 'hot']);
  const hotDone = { hot: 1, wide: 0 };
  assert.equal(dueOf(scheduleWith({ tail: 1, rolled: hotDone }), quietMs), null);
  assert.deepEqual(dueOf(scheduleWith({ tail: 1, rolled: hotDone }), longQuietMs), [1, 'wide']);
});

test('teams take turns, and a team without a tail is forgotten', () => {
  const schedule = scheduleWith({ tail: 450 }, { tail: 450 });
  const seen: unknown[] = [];
  for (let i = 0; i < 6; i++) {
    const due = schedule.next(0, busyMs);
    if (!due) break;
    seen.push(due.team.teamNo);
    const rolledSeq = { ...due.team.rolledSeq, hot: due.team.rolledSeq.hot + 200 };
    schedule.noteRolled(due, rolledSeq);
  }
  assert.deepEqual(seen, [1, 2, 1, 2]);
  const due = schedule.next(0, longQuietMs) ?? assert.fail();
  schedule.noteRolled(due, { hot: 450, wide: 450 });
  assert.equal(schedule.next(0, longQuietMs)?.team.teamNo, 3 - due.team.teamNo);
});

test('once the large sets are due, they are rolled up until an eighth of their tail is left', () => {
  const schedule = scheduleWith({ tail: 1_000, rolled: { hot: 1_000, wide: 0 } });
  const sizes: number[] = [];
  for (let wide = 0; sizes.length < 20;) {
    const due = schedule.next(0, busyMs);
    if (!due) break;
    assert.equal(due.speed, 'wide');
    sizes.push((wide += 250));
    schedule.noteRolled(due, { hot: 1_000, wide });
  }
  assert.deepEqual(sizes, [250, 500, 750, 1_000]);
  const other = scheduleWith({ tail: 1_000, rolled: { hot: 1_000, wide: 0 } });
  const due = other.next(0, busyMs) ?? assert.fail();
  other.noteRolled(due, { hot: 1_000, wide: 880 });
  assert.equal(dueOf(other, busyMs), null, 'a rest of 120 waits for more');
  assert.equal(
    other.noteCommit(team(1, 1_099), () => assert.fail()),
    false,
  );
  assert.equal(dueOf(other, busyMs), null);
});

test('a team that only repeated requests has no tail, and one whose other sets are behind is kept', () => {
  const repeated = new RollSchedule(bounds);
  repeated.noteCommit(team(1, 50), () => ({ hot: 50, wide: 50 }));
  assert.equal(repeated.hasTails, false);
  const schedule = scheduleWith({ tail: 50 });
  const due = schedule.next(0, quietMs) ?? assert.fail();
  // Another process has rolled up the small sets.
  schedule.noteRolled(due, { hot: 50, wide: 0 });
  assert.deepEqual(dueOf(schedule, longQuietMs), [1, 'wide']);
});

test('the large sets of a team that has begun come before those of others', () => {
  const rolled = { hot: 1_000, wide: 0 };
  const schedule = scheduleWith({ tail: 1_000, rolled }, { tail: 1_000, rolled });
  assert.equal(schedule.next(0, busyMs)?.team.teamNo, 1);
  assert.equal(schedule.next(0, busyMs, 2)?.team.teamNo, 2);
  assert.equal(schedule.next(0, busyMs, 7)?.team.teamNo, 1);
});

test('after a failure a team waits longer each time, and the others do not', () => {
  const schedule = scheduleWith({ tail: 500 }, { tail: 500 });
  let nowMs = 0;
  for (const pauseMs of [limits.rollRetryMsMin, 2 * limits.rollRetryMsMin]) {
    const due = schedule.next(nowMs, busyMs) ?? assert.fail();
    assert.equal(due.team.teamNo, 1);
    schedule.noteFailed(due, nowMs);
    assert.deepEqual(dueOf(schedule, busyMs, nowMs + pauseMs - 1), [2, 'hot']);
    nowMs += pauseMs;
  }
  assert.deepEqual(dueOf(schedule, busyMs, nowMs), [1, 'hot']);
});

test('a roll is as large as fits into its time, within bounds', () => {
  const size = new RollSize(limits.rollMsTarget);
  const usual = size.rows;
  size.note(usual, 10 * limits.rollMsTarget);
  assert.equal(size.rows, Math.floor(usual / 10));
  for (let i = 0; i < 20; i++) size.note(size.rows, 0.5 * limits.rollMsTarget);
  assert.equal(size.rows, limits.rollRowsMax);
  size.note(size.rows, 1e9);
  assert.equal(size.rows, limits.rollRowsMin);
  size.note(1, 100 * limits.rollMsTarget);
  assert.equal(size.rows, limits.rollRowsMin, 'a roll of one trace says nothing');
});

test('the tails of all teams are counted as they grow and are rolled up', () => {
  const schedule = scheduleWith({ tail: 300 }, { tail: 50, rolled: { hot: 20, wide: 0 } });
  assert.deepEqual(schedule.tails, { hot: 330, wide: 350 });
  schedule.noteCommit(team(1, 310), () => assert.fail());
  assert.deepEqual(schedule.tails, { hot: 340, wide: 360 });
  const due = schedule.next(0, busyMs) ?? assert.fail();
  schedule.noteRolled(due, { hot: 200, wide: 0 });
  assert.deepEqual(schedule.tails, { hot: 140, wide: 360 });
  for (let i = 0; i < 2; i++) {
    const rest = schedule.next(0, longQuietMs) ?? assert.fail();
    schedule.noteRolled(rest, { hot: rest.team.lastSeq, wide: rest.team.lastSeq });
  }
  assert.deepEqual(schedule.tails, { hot: 0, wide: 0 });
});
