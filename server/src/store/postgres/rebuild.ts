import { setTimeout as delay } from 'node:timers/promises';
import type { RollSpeed } from '../../core/dimensions.ts';
import { limits } from '../../limits.ts';
import type { Roller } from '../roller.ts';
import type { TeamMarks } from '../team-marks.ts';
import { ask, inTransaction, run } from './connection.ts';
import type { Pools } from './connection.ts';
import { counterFromRow, marksFromRow } from './marks-rows.ts';
import { asFailure } from './postgres-failures.ts';
import { rollOnce } from './roll.ts';
import { ofMarks, ofRollups } from './rollup-statements.ts';
import { ofOneTeam } from './statements.ts';

/** Rolling on demand: for tests, migrations and tools. Servers roll in a thread of their own. */
export function openOnDemandRoller({ writing, reading, begin }: Pools): Roller {
  const via = { pool: writing, begin };

  async function marks(teamId: string): Promise<TeamMarks> {
    const [row] = await ask(reading, ofMarks.readMarks, [teamId]);
    return marksFromRow(row);
  }

  /** Removes the rollups of a generation in short transactions, and its marks at the end, so that an interruption leaves no orphans. */
  async function remove(teamId: string, generation: number): Promise<void> {
    for (;;) {
      const { rowCount } = await inTransaction(writing, begin, (client) =>
        run(client, ofRollups.removeRows, [teamId, generation]),
      );
      if (rowCount === 0) break;
    }
    await inTransaction(writing, begin, (client) =>
      run(client, ofMarks.removeMarks, [teamId, generation]),
    );
  }

  /** The generation to fill: that of an interrupted rebuild for the same time zone, or a new one. */
  async function prepare(teamId: string, timeZone: string): Promise<number> {
    const active = await marks(teamId);
    let last = active.generation;
    for (const row of await ask(reading, ofMarks.readInactive, [teamId])) {
      const { generation, timeZone: theirs } = marksFromRow(row);
      // A generation from before the active one was replaced and not removed completely.
      if (generation > active.generation && theirs === timeZone) return generation;
      await remove(teamId, generation);
      last = Math.max(last, generation);
    }
    await inTransaction(writing, begin, async (client) => {
      const { firstSeq } = counterFromRow(
        (await run(client, ofOneTeam.readCounter, [teamId])).rows[0],
      );
      await run(client, ofMarks.addMarks, [teamId, last + 1, timeZone, false, firstSeq - 1]);
    });
    return last + 1;
  }

  async function fill(
    teamId: string,
    generation: number,
    onProgress: (rolled: number, total: number) => void,
  ): Promise<void> {
    const filled: Record<RollSpeed, number> = { hot: 0, wide: 0 };
    for (const speed of ['hot', 'wide'] as const) {
      for (;;) {
        const startMs = performance.now();
        const job = { teamId, speed };
        const {
          rows,
          marks: now,
          counter,
        } = await rollOnce(via, job, limits.rebuildRowsMax, { generation });
        if (!now) throw new Error('another rebuild of this team is running');
        const before = counter.firstSeq - 1;
        filled[speed] = now.rolledSeq[speed] - before;
        onProgress(Math.floor((filled.hot + filled.wide) / 2), counter.lastSeq - before);
        if (rows < limits.rebuildRowsMax) break;
        // So that the rebuild uses at most half of the database's time.
        await delay(performance.now() - startMs);
      }
    }
  }

  return {
    async roll(teamId, speed, rowsMax) {
      try {
        return (await rollOnce(via, { teamId, speed }, rowsMax, 'active')).rows;
      } catch (error) {
        throw asFailure(error);
      }
    },
    marks,
    async rebuild(teamId, timeZone, onProgress = () => {}) {
      const generation = await prepare(teamId, timeZone);
      await fill(teamId, generation, onProgress).catch((error: unknown) => {
        throw asFailure(error);
      });
      const old = (await marks(teamId)).generation;
      await inTransaction(writing, begin, async (client) => {
        // Two statements: at no time may two rows be active.
        await run(client, ofMarks.deactivate, [teamId]);
        const { rowCount } = await run(client, ofMarks.activate, [teamId, generation]);
        if (rowCount !== 1) throw new Error('another rebuild of this team is running');
      });
      await remove(teamId, old);
    },
  };
}
