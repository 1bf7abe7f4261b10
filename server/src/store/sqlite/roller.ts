import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { limits } from '../../limits.ts';
import { anotherRebuild } from '../roller.ts';
import type { Roller } from '../roller.ts';
import type { TeamMarks } from '../team-marks.ts';
import { openReading, retryWhileBusy } from './connection.ts';
import { setAsideWrongGroups } from './group-repair.ts';
import { findWrongLookups, lookupBlocks, repairLookups } from './lookup-repair.ts';
import { TeamRolls } from './roll.ts';
import type { Rolled } from './roll.ts';
import { attachNewRollups, closeRollups, openRollupWriting } from './rollup-file.ts';
import { TeamSnapshots } from './team-snapshot.ts';

interface Opened {
  rollups: DatabaseSync;
  truth: DatabaseSync;
  rolls: TeamRolls;
}

/**
 * Rolls on request, for tools and tests. A server rolls on a thread of its own; both can do so at the same time. The files are opened when they
 * are needed: `prepare` makes sure that there is a rollup file.
 */
export function openRoller(
  db: DatabaseSync,
  reading: DatabaseSync,
  path: string,
  prepare: () => void,
  onClose: (release: () => void) => void,
): Roller {
  let opened: Opened | null = null;

  function open(): Opened {
    if (opened) return opened;
    prepare();
    attachNewRollups(reading, path);
    const truth = openReading(path);
    const rollups = openRollupWriting(path);
    onClose(() => {
      closeRollups(rollups);
      truth.close();
    });
    return (opened = { rollups, truth, rolls: new TeamRolls(rollups, truth) });
  }

  function teamNoOf(teamId: string): number {
    const row = db.prepare('select no from teams where id = ?').get(teamId);
    if (!row) throw new Error(`there is no team ${teamId}`);
    return row['no'] as number;
  }

  /** Another process may hold the lock of the rollup file for as long as a roll takes. */
  function rollOnce(teamNo: number, rowsMax: number): Promise<Rolled> {
    const { rollups, rolls } = open();
    return retryWhileBusy(rollups, () => rolls.roll(teamNo, rowsMax), runAlone);
  }

  async function rollAll(
    teamId: string,
    isDone: (rolled: Rolled) => boolean,
    onProgress: (seq: number) => void,
  ): Promise<void> {
    const teamNo = teamNoOf(teamId);
    // Small at first, so that there is progress to show soon.
    for (let rowsMax = firstRows; ; rowsMax = Math.min(2 * rowsMax, limits.rollRowsMax)) {
      const startMs = performance.now();
      const rolled = await rollOnce(teamNo, rowsMax);
      onProgress(rolled.seq);
      if (isDone(rolled)) return;
      // A server may be working too.
      await delay(performance.now() - startMs);
    }
  }

  return {
    async roll(teamId, rowsMax) {
      return (await rollOnce(teamNoOf(teamId), rowsMax)).rows;
    },
    async marks(teamId) {
      return marksOf(reading, teamId);
    },
    async rebuild(teamId, timeZone, onProgress = () => {}) {
      const teamNo = teamNoOf(teamId);
      const { rolls, truth, rollups } = open();
      await retryWhileBusy(rollups, () => setAsideWrongGroups(rollups, teamNo), runAlone);
      const rebuildNo = await retryWhileBusy(db, () => requestRebuild(db, rolls, teamNo, timeZone));
      const { firstSeq, lastSeq } = rolls.truthOf(teamNo);
      await rollAll(
        teamId,
        ({ mark }) => {
          if (rolls.truthOf(teamNo).rebuildNo !== rebuildNo) throw anotherRebuild();
          return mark?.rebuildNo === rebuildNo;
        },
        (seq) => {
          const total = lastSeq - firstSeq + 1;
          onProgress(Math.min(seq - firstSeq + 1, total), total);
        },
      );
      await rollAll(
        teamId,
        ({ isComplete }) => isComplete,
        () => {},
      );
      for (const block of lookupBlocks(rollups, teamNo)) {
        const wrong = findWrongLookups(rollups, truth, teamNo, block);
        if (wrong) await retryWhileBusy(rollups, () => repairLookups(rollups, teamNo, wrong));
        await nextTurn();
      }
    },
    async removeOldRollups(teamId) {
      await rollAll(
        teamId,
        ({ isComplete }) => isComplete,
        () => {},
      );
    },
  };
}

const firstRows = 256;

/** Returns the number of the request. One for the same time zone that was interrupted, or that is running, is joined. */
function requestRebuild(
  db: DatabaseSync,
  rolls: TeamRolls,
  teamNo: number,
  timeZone: string,
): number {
  const { timeZone: wanted, rebuildNo } = rolls.truthOf(teamNo);
  const isPending = rebuildNo !== (rolls.activeMark(teamNo)?.rebuildNo ?? 0);
  if (isPending && wanted === timeZone) return rebuildNo;
  db.prepare('update teams set time_zone = ?, rebuild_no = ? where no = ?').run(
    timeZone,
    rebuildNo + 1,
    teamNo,
  );
  return rebuildNo + 1;
}

/** A roll has a transaction of its own. */
function runAlone<T>(_db: DatabaseSync, work: () => T): T {
  return work();
}

function marksOf(reading: DatabaseSync, teamId: string): TeamMarks {
  const marks = new TeamSnapshots(reading).read(teamId, (team) => team.marks);
  if (!marks) throw new Error(`there is no team ${teamId}`);
  return marks;
}
