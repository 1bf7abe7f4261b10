/**
 * The rolling thread. It adds traces to the rollups behind the write, on its own connection, so that neither the CPU time nor the round
 * trips of rolling delay a request. docs/decisions/0011-rolling-on-postgresql.md says who rolls when.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { ask, openRollingPool } from './connection.ts';
import { marksFromRow } from './marks-rows.ts';
import { RollSchedule } from './roll-schedule.ts';
import { rollOnce } from './roll.ts';
import type { FromRoller, RollerData, ToRoller } from './roller-messages.ts';
import { overAllTeams } from './statements.ts';
import type { RollReport } from '../store.ts';

if (!parentPort) throw new Error('this file runs as a worker thread');
const port = parentPort;
const { url, role, begin, naming, bounds, isReporting } = workerData as RollerData;
const pool = openRollingPool(url, role, naming);
const via = { pool, begin };
const schedule = new RollSchedule(bounds);
let isClosing = false;
/** Ends the pause of the loop. */
let wake = (): void => {};
let nextSweepMs = role === 'server' ? 0 : Infinity;

port.on('message', (message: ToRoller) => {
  if (message.kind === 'close') isClosing = true;
  else {
    const nowMs = performance.now();
    const { teamId, fromSeq, lastSeq } = message.teams;
    for (const [i, id] of teamId.entries()) {
      schedule.written(id, fromSeq[i] ?? 0, lastSeq[i] ?? 0, nowMs);
    }
  }
  wake();
});

while (!isClosing) {
  if (performance.now() >= nextSweepMs) await sweep();
  const job = schedule.next(performance.now());
  if (!job) {
    await pause();
    continue;
  }
  try {
    const startMs = performance.now();
    const rolled = await rollOnce(via, job, job.rowsMax, 'active if free');
    const nowMs = performance.now();
    const tookMs = nowMs - startMs;
    schedule.rolled(job, rolled, { tookMs, nowMs });
    report({ speed: job.speed, rows: rolled.rows, tookMs });
  } catch (error) {
    schedule.failed(job, performance.now());
    const { teamId, speed } = job;
    const failure = { teamId, speed, reason: messageOf(error) };
    if (!isClosing) tell({ kind: 'failed', failure });
  }
}
await pool.end();
port.close();

function tell(message: FromRoller): void {
  port.postMessage(message);
}

function report(roll: RollReport['roll']): void {
  if (isReporting) tell({ kind: 'rolled', report: { tails: schedule.tails, roll } });
}

async function pause(): Promise<void> {
  const nowMs = performance.now();
  const waitMs = Math.min(schedule.waitMs(nowMs), Math.max(0, nextSweepMs - nowMs));
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, Math.min(waitMs, limits.rollSweepMs));
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

/** Finds tails that no server is working on, such as those of a server that has stopped. Servers do this at different times. */
async function sweep(): Promise<void> {
  nextSweepMs = performance.now() + limits.rollSweepMs * (0.5 + Math.random());
  try {
    for (const row of await ask(pool, overAllTeams.findTails, [])) {
      const { rolledSeq } = marksFromRow(row);
      schedule.found(row['team_id'] as string, Number(row['last_seq']), rolledSeq);
    }
    report(null);
  } catch {
    // The next sweep finds them.
  }
}
