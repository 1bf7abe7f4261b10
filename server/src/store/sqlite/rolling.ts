import type { DatabaseSync } from 'node:sqlite';
import { messageOf } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { RollBounds, RollFailure, RollReport } from '../store.ts';
import { openRollupTables } from './rollup-tables.ts';
import { RollSchedule } from './roll-schedule.ts';
import type { DueRoll } from './roll-schedule.ts';
import { PendingRolls } from './pending-rolls.ts';
import type { TeamCommit, TeamEnd, Writer } from './writer.ts';

/** Rolls traces up in the writer thread, one short transaction at a time, between commits that have been answered. */
export interface Rolling {
  noteCommit(teams: readonly TeamCommit[]): void;
  stop(): void;
}

export interface RollingOptions {
  bounds: RollBounds;
  isServer: boolean;
  /** Whether anybody asked for reports. */
  isReporting: boolean;
}

interface RollingEvents {
  onFailed(failure: RollFailure): void;
  onRoll(report: RollReport): void;
}

export function startRolling(
  db: DatabaseSync,
  writer: Writer,
  { bounds, isServer, isReporting }: RollingOptions,
  { onFailed, onRoll }: RollingEvents,
): Rolling {
  const tables = openRollupTables(db);
  const schedule = new RollSchedule(bounds);
  const pending = { hot: new PendingRolls(tables, 'hot'), wide: new PendingRolls(tables, 'wide') };
  const atStart = { hot: 0, wide: 0 };
  let lastCommitMs = performance.now();
  let timer: NodeJS.Timeout | null = null;
  /** When the timer fires. */
  let plannedMs = Infinity;
  /**
   * After each roll a pause of the same length, so that rolling never takes more than half of the writer's time. An idle server needs
   * none; a tool always pauses, since a server may write to the same file.
   */
  let pausedUntilMs = 0;
  let isStopped = false;
  let isReported = false;

  const rolledSeqOf = ({ teamNo }: TeamEnd) => ({
    ...(tables.marks(teamNo)?.rolledSeq ?? atStart),
  });

  const isIdle = (nowMs: number): boolean =>
    isServer && nowMs - lastCommitMs >= limits.hotRollIdleMs;

  /**
   * Waits at least this long. Messages that arrive in that time are handled first. Without a wait it follows the commit that was just
   * answered: the main thread is busy with the replies and needs the writer least.
   */
  function plan(delayMs: number): void {
    const atMs = performance.now() + delayMs;
    if (isStopped || atMs >= plannedMs) return;
    if (timer !== null) clearTimeout(timer);
    plannedMs = atMs;
    if (delayMs > 0) timer = setTimeout(step, delayMs);
    else setImmediate(step);
  }

  function step(): void {
    plannedMs = Infinity;
    if (isStopped || writer.brokenBy !== null) return;
    const nowMs = performance.now();
    const due = schedule.next(nowMs, nowMs - lastCommitMs, pending.wide.begunTeamNo);
    if (due === null) {
      if (schedule.hasTails) plan(limits.hotRollIdleMs);
      return;
    }
    const pauseMs = roll(due);
    pausedUntilMs = performance.now() + pauseMs;
    plan(Math.max(0, pausedUntilMs - performance.now()));
  }

  /** Runs one transaction. Returns how long to pause. */
  function roll(due: DueRoll): number {
    const { team, speed, rowsMax } = due;
    const { teamNo, lastSeq } = team;
    const startMs = performance.now();
    const startCpu = process.threadCpuUsage();
    let hasBegun = false;
    const result = writer.aside(() => {
      hasBegun = true;
      const step = pending[speed].step(teamNo, rowsMax, lastSeq);
      if (speed === 'hot') pending.wide.storeLookups(teamNo);
      return { ...step, rolledSeq: rolledSeqOf(team) };
    });
    const endMs = performance.now();
    const tookMs = endMs - startMs;
    const pauseMs = isIdle(startMs) ? 0 : tookMs;
    if (result.kind === 'done') {
      const { read, rolled, isDone, rolledSeq } = result.value;
      // Work, not time: on a busy machine shorter batches would only cost more of it.
      const { user, system } = process.threadCpuUsage(startCpu);
      const workMs = (user + system) / 1000;
      schedule.noteRead(due, read, workMs);
      pending[speed].noteTime(workMs);
      if (isDone) schedule.noteRolled(due, rolledSeq);
      // If something else has rolled everything up, nothing will come of what waits.
      if (schedule.rolledSeqOf(teamNo) === null) drop(teamNo);
      if (isReporting) onRoll({ tails: schedule.tails, roll: { speed, rows: rolled, tookMs } });
      return pauseMs;
    }
    // What was gathered may be stored in part.
    if (hasBegun) drop(teamNo);
    if (result.kind === 'busy') return limits.busyRetryMs;
    schedule.noteFailed(due, endMs);
    onFailed({ teamId: team.teamId, speed, reason: result.reason });
    return pauseMs;
  }

  function drop(teamNo: number): void {
    pending.hot.drop(teamNo);
    pending.wide.drop(teamNo);
  }

  /** Returns whether a roll is due now. */
  function take({ end, added }: TeamCommit): boolean {
    const { teamNo } = end;
    let isDue = schedule.noteCommit(end, () => rolledSeqOf(end));
    const rolledSeq = schedule.rolledSeqOf(teamNo);
    if (rolledSeq === null) return isDue;
    pending.hot.add(teamNo, added, rolledSeq.hot);
    if (pending.wide.add(teamNo, added, rolledSeq.wide)) {
      schedule.noteFull(teamNo);
      isDue = true;
    }
    return isDue;
  }

  function findTails(): void {
    for (const end of teamsBehind(db)) schedule.noteCommit(end, () => rolledSeqOf(end));
    if (isReporting) onRoll({ tails: schedule.tails, roll: null });
    plan(limits.hotRollIdleMs);
  }

  /** Reads marks. If that fails, writes go on. A failure is reported once, since the next commit tries again. */
  function attempt(read: () => void): void {
    try {
      read();
      isReported = false;
    } catch (error) {
      if (!isReported) onFailed({ teamId: 'every team', speed: 'hot', reason: messageOf(error) });
      isReported = true;
    }
  }

  // The value changes when another connection commits, such as that of a tool.
  const readVersion = db.prepare('pragma data_version');
  let version = readVersion.get()?.['data_version'];
  const watch = setInterval(() => {
    attempt(() => {
      const now = readVersion.get()?.['data_version'];
      if (now === version) return;
      version = now;
      findTails();
    });
  }, limits.wideRollIdleMs);
  attempt(findTails);

  return {
    noteCommit(teams) {
      lastCommitMs = performance.now();
      let isDue = false;
      attempt(() => {
        for (const team of teams) {
          if (take(team)) isDue = true;
        }
      });
      plan(isDue ? Math.max(0, pausedUntilMs - lastCommitMs) : limits.hotRollIdleMs);
    },
    stop() {
      isStopped = true;
      clearInterval(watch);
      if (timer !== null) clearTimeout(timer);
    },
  };
}

/** Teams with traces that were not rolled up before the last stop, or that another process has written. */
function teamsBehind(db: DatabaseSync): TeamEnd[] {
  return db
    .prepare(
      `select t.no, t.id, c.first_seq, c.last_seq from teams t
         join team_counters c on c.team_no = t.no
         join team_marks m on m.team_no = t.no and m.is_active = 1
       where m.hot_seq < c.last_seq or m.wide_seq < c.last_seq`,
    )
    .all()
    .map((row) => ({
      teamNo: row['no'] as number,
      teamId: row['id'] as string,
      firstSeq: row['first_seq'] as number,
      lastSeq: row['last_seq'] as number,
    }));
}
