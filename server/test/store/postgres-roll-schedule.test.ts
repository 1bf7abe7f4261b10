import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RollSpeed } from '../../src/core/dimensions.ts';
import { limits } from '../../src/limits.ts';
import { RollSchedule } from '../../src/store/postgres/roll-schedule.ts';
import type { RollJob } from '../../src/store/postgres/roll-schedule.ts';

const bounds = { hotTailRows: 100, wideTailRows: 1_000 };

function scheduleWith(...teams: { lastSeq: number; hot?: number; wide?: number }[]): RollSchedule {
  const schedule = new RollSchedule(bounds);
  for (const [i, { lastSeq, hot = 0, wide = 0 }] of teams.entries()) {
    schedule.found(`team ${i + 1}`, lastSeq, { hot, wide });
  }
  return schedule;
}

/** A write of another team, so that the server is not idle. */
function keepBusy(schedule: RollSchedule, nowMs: number): void {
  schedule.written('busy', 0, 1, nowMs);
}

function nextOf(schedule: RollSchedule, nowMs: number): [string, RollSpeed] | null {
  const job = schedule.next(nowMs);
  return job && [job.teamId, job.speed];
}

function jobOf(schedule: RollSchedule, nowMs: number): RollJob {
  return schedule.next(nowMs) ?? assert.fail('nothing is due');
}

interface Result {
  lastSeq: number;
  hot: number;
  wide: number;
  rows?: number;
  tookMs?: number;
  nowMs?: number;
}

function noteRolled(schedule: RollSchedule, job: RollJob, result: Result): void {
  const { lastSeq, hot, wide, rows = 1, tookMs = 1, nowMs = 0 } = result;
  const marks = { generation: 1, timeZone: 'UTC', rolledSeq: { hot, wide } };
  const counter = { firstSeq: 1, lastSeq, lastUs: 0 };
  schedule.rolled(job, { rows, marks, counter }, { tookMs, nowMs });
}

test('a tail that a sweep has found is rolled up beside writes if it has reached its bound', () => {
  const schedule = scheduleWith({ lastSeq: 99 }, { lastSeq: 100 });
  keepBusy(schedule, 0);
  assert.deepEqual(nextOf(schedule, 0), ['team 2', 'hot']);
});

test('a sweep corrects what was assumed about a team after a write', () => {
  const schedule = new RollSchedule(bounds);
  schedule.written('team 1', 5_000, 5_001, 0);
  assert.equal(nextOf(schedule, 0), null);
  schedule.found('team 1', 5_001, { hot: 5_000, wide: 200 });
  assert.deepEqual(nextOf(schedule, 0), ['team 1', 'wide']);
});

test('when nothing was written for a while every tail is rolled up, the small sets first', () => {
  const schedule = new RollSchedule(bounds);
  schedule.written('team 1', 0, 1, 0);
  assert.equal(nextOf(schedule, limits.hotRollIdleMs - 1), null);
  assert.equal(schedule.waitMs(0), limits.hotRollIdleMs);
  const job = jobOf(schedule, limits.hotRollIdleMs);
  assert.equal(job.speed, 'hot');
  noteRolled(schedule, job, { lastSeq: 1, hot: 1, wide: 0 });
  assert.equal(nextOf(schedule, limits.wideRollIdleMs - 1), null);
  noteRolled(schedule, jobOf(schedule, limits.wideRollIdleMs), { lastSeq: 1, hot: 1, wide: 1 });
  assert.equal(schedule.waitMs(0), Infinity);
});

test('teams take turns', () => {
  const schedule = scheduleWith({ lastSeq: 900 }, { lastSeq: 900 });
  const seen = Array.from({ length: 4 }, () => nextOf(schedule, 0)?.[0]);
  assert.deepEqual(seen, ['team 1', 'team 2', 'team 1', 'team 2']);
});

test('a failure of the large sets pauses only them, longer each time, while the small sets succeed', () => {
  const schedule = scheduleWith({ lastSeq: 100_000, hot: 100_000 });
  const failedAtMs: number[] = [];
  let lastSeq = 100_000;
  for (let nowMs = 0; nowMs < 16_000; nowMs += 50) {
    schedule.written('team 1', lastSeq, lastSeq + 100, nowMs);
    lastSeq += 100;
    for (let job = schedule.next(nowMs); job; job = schedule.next(nowMs)) {
      if (job.speed === 'hot') noteRolled(schedule, job, { lastSeq, hot: lastSeq, wide: 0, nowMs });
      else {
        failedAtMs.push(nowMs);
        schedule.failed(job, nowMs);
      }
    }
  }
  const min = limits.rollRetryMsMin;
  assert.deepEqual(failedAtMs, [0, min, 3 * min, 7 * min, 15 * min]);
});

test('the small sets of a team do not wait for the pause of its large ones', () => {
  const schedule = scheduleWith({ lastSeq: 1_000, hot: 1_000 });
  keepBusy(schedule, 0);
  schedule.failed(jobOf(schedule, 0), 0);
  schedule.written('team 1', 1_000, 1_100, 0);
  assert.deepEqual(nextOf(schedule, 0), ['team 1', 'hot']);
});

test('after a failure half as many traces are tried, without an effect on the other speed', () => {
  const schedule = scheduleWith({ lastSeq: 1_000 });
  const job = jobOf(schedule, 0);
  const usual = job.rowsMax;
  schedule.failed(job, 0);
  const wide = jobOf(schedule, 0);
  assert.deepEqual([wide.speed, wide.rowsMax], ['wide', usual]);
  assert.equal(jobOf(schedule, limits.rollRetryMsMin).rowsMax, usual >> 1);
  for (let i = 0; i < 20; i++) schedule.failed(job, 0);
  assert.equal(jobOf(schedule, limits.rollRetryMsMax).rowsMax, limits.rollRowsMin);
});

test('while another process rolls up a team, neither of its tails is tried for a moment', () => {
  const schedule = scheduleWith({ lastSeq: 5_000 });
  const job = jobOf(schedule, 0);
  const counter = { firstSeq: 1, lastSeq: 5_000, lastUs: 0 };
  schedule.rolled(job, { rows: 0, marks: null, counter }, { tookMs: 1, nowMs: 0 });
  assert.equal(nextOf(schedule, limits.hotRollIdleMs - 1), null);
  assert.deepEqual(nextOf(schedule, limits.hotRollIdleMs), ['team 1', 'hot']);
});

test('once the large sets are due, they are rolled up until an eighth of their tail is left', () => {
  const schedule = scheduleWith({ lastSeq: 1_000, hot: 1_000 });
  keepBusy(schedule, 0);
  for (const wide of [250, 500, 750]) {
    const job = jobOf(schedule, 0);
    assert.equal(job.speed, 'wide');
    noteRolled(schedule, job, { lastSeq: 1_000, hot: 1_000, wide });
  }
  noteRolled(schedule, jobOf(schedule, 0), { lastSeq: 1_000, hot: 1_000, wide: 880 });
  assert.equal(nextOf(schedule, 0), null, 'a rest of 120 waits for more');
  schedule.written('team 1', 1_000, 1_001, 0);
  assert.equal(nextOf(schedule, 0), null);
});

test('the tails of all teams are counted as they grow and are rolled up', () => {
  const schedule = scheduleWith({ lastSeq: 300 }, { lastSeq: 50, hot: 20 });
  assert.deepEqual(schedule.tails, { hot: 330, wide: 350 });
  schedule.written('team 1', 300, 310, 0);
  schedule.written('new', 7, 8, 0);
  assert.deepEqual(schedule.tails, { hot: 341, wide: 361 });
  const job = jobOf(schedule, 0);
  noteRolled(schedule, job, { lastSeq: 310, hot: 310, wide: 310 });
  assert.deepEqual(schedule.tails, { hot: 31, wide: 51 });
  schedule.found('team 2', 50, { hot: 50, wide: 50 });
  assert.deepEqual(schedule.tails, { hot: 1, wide: 1 });
});
