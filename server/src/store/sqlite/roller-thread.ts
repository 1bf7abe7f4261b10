/**
 * The roller's thread: it adds new traces and changes to the rollups, one short transaction of the rollup file after the other. No write and no
 * answer waits for it.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { prepareArrays } from './array-statement.ts';
import { openReading } from './connection.ts';
import { TeamRolls } from './roll.ts';
import { teamTruthFrom, teamTruthSql } from './roll-marks.ts';
import type { RollMark, TeamTruth } from './roll-marks.ts';
import { RollSchedule } from '../roll-schedule.ts';
import type { TeamTail } from '../roll-schedule.ts';
import { closeRollups, giveUpRollups, openRollupWriting } from './rollup-file.ts';
import type { FromRoller, RollerData } from './roller-messages.ts';
import { isBusy, isDamaged } from './sqlite-failures.ts';

if (!parentPort) throw new Error('this file runs as a worker thread');
const port = parentPort;
const { path, rowsMin, isReporting } = workerData as RollerData;
const truth = openReading(path);
const rollups = openRollupWriting(path);
const rolls = new TeamRolls(rollups, truth);
const schedule = new RollSchedule(rowsMin);
const readVersion = truth.prepare('pragma data_version');
const readTeams = prepareArrays(truth, teamTruthSql.replace('select t.no', 'select t.id, t.no'));
/** What each team's active generation contains, and whether nothing else is to be done. */
const known = new Map<number, { mark: RollMark | null; isComplete: boolean }>();
const numbers = new Map<string, number>();
let version: unknown = null;
let timer: NodeJS.Timeout | null = null;
let isFailureReported = false;

port.on('message', stop);
// Other threads start first.
plan(0);

function plan(delayMs: number): void {
  timer = setTimeout(step, delayMs);
}

function stop(): void {
  if (timer !== null) clearTimeout(timer);
  closeRollups(rollups);
  truth.close();
  send({ kind: 'stopped' });
  port.close();
}

function step(): void {
  const startMs = performance.now();
  attempt(findTails);
  const due = schedule.next(startMs);
  if (!due) return plan(limits.rollPollMs);
  roll(due);
  const endMs = performance.now();
  // A pause of the same length, unless the tails grow too long.
  plan(schedule.tailRows > limits.rollHurryRows ? 0 : endMs - startMs);
}

/** Looks for new traces if anything was committed. */
function findTails(): void {
  const now = readVersion.get()?.['data_version'];
  if (now === version) return;
  version = now;
  const nowMs = performance.now();
  for (const [teamId, ...row] of readTeams.all()) {
    const team = teamTruthFrom(row);
    numbers.set(teamId as string, team.teamNo);
    schedule.note(tailOf(teamId as string, team), nowMs);
  }
  if (isReporting) report(null);
}

function tailOf(teamId: string, team: TeamTruth): TeamTail {
  const { teamNo } = team;
  const state = known.getOrInsertComputed(teamNo, () => ({
    mark: rolls.activeMark(teamNo),
    isComplete: false,
  }));
  const { mark } = state;
  const isWanted = mark?.timeZone === team.timeZone && mark.rebuildNo === team.rebuildNo;
  const seq = mark?.seq ?? team.firstSeq - 1;
  const rows =
    Math.max(0, team.lastSeq - seq) + Math.max(0, team.lastChangeNo - (mark?.changeNo ?? 0));
  return { teamId, rows, hasWork: !isWanted || !state.isComplete };
}

function roll({ teamId }: TeamTail): void {
  const startMs = performance.now();
  const teamNo = numbers.get(teamId) ?? 0;
  try {
    const { rows, mark, isComplete } = rolls.roll(teamNo, limits.rollRowsMax);
    known.set(teamNo, { mark, isComplete });
    const endMs = performance.now();
    schedule.noteRolled(tailOf(teamId, rolls.truthOf(teamNo)), endMs);
    isFailureReported = false;
    if (isReporting) report({ rows, tookMs: endMs - startMs });
  } catch (error) {
    known.delete(teamNo);
    // Another process is rolling.
    if (isBusy(error)) return;
    schedule.noteFailed(teamId, performance.now());
    const failure = { teamId, reason: reasonOf(error) };
    send({ kind: 'rollFailed', failure });
  }
}

function reasonOf(error: unknown): string {
  if (!isDamaged(error)) return messageOf(error);
  // The database may be what is damaged: then the rollups are built again in vain.
  giveUpRollups(rollups);
  return `${messageOf(error)}; the rollups are built again at the next start`;
}

function report(roll: { rows: number; tookMs: number } | null): void {
  send({ kind: 'rolled', report: { tailRows: schedule.tailRows, roll } });
}

/** A failure is reported once, since it is tried again soon. */
function attempt(work: () => void): void {
  try {
    work();
  } catch (error) {
    version = null;
    const failure = {
      teamId: 'every team',
      reason: reasonOf(error),
    };
    if (!isFailureReported) send({ kind: 'rollFailed', failure });
    isFailureReported = true;
  }
}

function send(message: FromRoller): void {
  port.postMessage(message);
}
