/**
 * The rolling thread. It adds traces and changes to the rollups behind the write, on its own connection, so that neither the CPU time nor the
 * round trips of rolling delay a request.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { RollSchedule } from '../roll-schedule.ts';
import { RollSize } from '../roll-size.ts';
import type { RollReport } from '../store.ts';
import { ask, openRollingPool } from './connection.ts';
import { marksFromRow } from './marks-rows.ts';
import { roll } from './roll.ts';
import type { Rolled } from './roll.ts';
import type { FromRoller, RollerData, ToRoller } from './roller-messages.ts';
import { overAllTeams } from './statements.ts';

if (!parentPort) throw new Error('this file runs as a worker thread');
const port = parentPort;
const { url, role, begin, naming, rowsMin, isReporting } = workerData as RollerData;
const pool = openRollingPool(url, role, naming);
const via = { pool, begin };
const schedule = new RollSchedule(rowsMin);
/** Traces with very many different labels make a roll take longer. */
const size = new RollSize(limits.postgresRollMsTarget, limits.rollTailRows);
/** Of teams with a tail: where the mark is, as far as this process knows. Other processes roll up too. */
const rolledSeqs = new Map<string, number>();
let isClosing = false;
/** Ends the pause of the loop. */
let wake = (): void => {};
let nextSweepMs = role === 'server' ? 0 : Infinity;

port.on('message', (message: ToRoller) => {
  if (message.kind === 'close') isClosing = true;
  else {
    const { teamId, fromSeq, lastSeq } = message.teams;
    for (const [i, id] of teamId.entries()) {
      const rolledSeq = rolledSeqs.getOrInsert(id, fromSeq[i] ?? 0);
      note(id, Math.max(0, (lastSeq[i] ?? 0) - rolledSeq));
    }
  }
  wake();
});

while (!isClosing) {
  if (performance.now() >= nextSweepMs) await sweep();
  const due = schedule.next(performance.now());
  if (due) await rollTeam(due.teamId);
  else await pause(limits.rollPollMs);
}
await pool.end();
port.close();

async function rollTeam(teamId: string): Promise<void> {
  const startMs = performance.now();
  const rowsMax = size.rows;
  try {
    const rolled = await roll(via, teamId, rowsMax, 'active if free');
    const tookMs = performance.now() - startMs;
    size.note(rolled.rows, tookMs);
    noteRolled(teamId, rolled, rolled.rows >= rowsMax);
    report({ rows: rolled.rows, tookMs });
    // A pause of the same length, unless the tails grow too long.
    if (schedule.tailRows <= limits.rollHurryRows) await pause(tookMs);
  } catch (error) {
    size.halve();
    schedule.noteFailed(teamId, performance.now());
    const failure = { teamId, reason: messageOf(error) };
    if (!isClosing) tell({ kind: 'failed', failure });
  }
}

function note(teamId: string, rows: number): void {
  schedule.note({ teamId, rows, hasWork: false }, performance.now());
}

function noteRolled(teamId: string, rolled: Rolled, hasMore: boolean): void {
  const { marks, counter, lastChangeNo } = rolled;
  const nowMs = performance.now();
  if (!marks) {
    schedule.pause(teamId, nowMs + limits.rollRetryMsMin);
    return;
  }
  const { seq, changeNo } = marks;
  const rows = Math.max(0, counter.lastSeq - seq) + (lastChangeNo - changeNo);
  if (rows === 0) rolledSeqs.delete(teamId);
  else rolledSeqs.set(teamId, seq);
  schedule.noteRolled({ teamId, rows, hasWork: hasMore && rows > 0 }, nowMs);
}

function tell(message: FromRoller): void {
  port.postMessage(message);
}

function report(done: RollReport['roll']): void {
  if (!isReporting) return;
  tell({ kind: 'rolled', report: { tailRows: schedule.tailRows, roll: done } });
}

async function pause(waitMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, waitMs);
    wake = () => {
      if (!isClosing) return;
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
      const teamId = row['team_id'] as string;
      const { seq, changeNo } = marksFromRow(row);
      rolledSeqs.set(teamId, seq);
      const changes = Math.max(0, Number(row['last_change_no']) - changeNo);
      note(teamId, Number(row['last_seq']) - seq + changes);
    }
    report(null);
  } catch {
    // The next sweep finds them.
  }
}
