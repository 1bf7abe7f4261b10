import { setTimeout as delay } from 'node:timers/promises';
import { limits } from '../../limits.ts';
import { anotherRebuild } from '../roller.ts';
import type { Roller } from '../roller.ts';
import { ask } from './connection.ts';
import type { Pools } from './connection.ts';
import { openGenerations } from './generations.ts';
import { marksFromRow } from './marks-rows.ts';
import { asFailure } from './postgres-failures.ts';
import { openFittingRolls } from './roll.ts';
import { ofMarks } from './rollup-statements.ts';

const firstRows = 256;

/** Rolling on demand: for tests and tools. Servers roll in a thread of their own. */
export function openOnDemandRoller(pools: Pools): Roller {
  const { writing, reading, begin } = pools;
  const roll = openFittingRolls({ pool: writing, begin });
  const generations = openGenerations(pools);

  async function fill(
    teamId: string,
    { generation, timeZone }: { generation: number; timeZone: string },
    onProgress: (rolled: number, total: number) => void,
  ): Promise<void> {
    // Small at first, so that there is progress to show soon.
    for (let rowsMax = firstRows; ; rowsMax = Math.min(2 * rowsMax, limits.rollRowsMax)) {
      const startMs = performance.now();
      const { marks, counter, lastChangeNo } = await roll(teamId, rowsMax, { generation });
      if (marks?.timeZone !== timeZone) throw anotherRebuild();
      const before = counter.firstSeq - 1;
      const seq = marks.seq;
      onProgress(seq - before, counter.lastSeq - before);
      if (seq >= counter.lastSeq && marks.changeNo >= lastChangeNo) return;
      // So that the rebuild uses at most half of the database's time.
      await delay(performance.now() - startMs);
    }
  }

  return {
    async roll(teamId, rowsMax) {
      try {
        return (await roll(teamId, rowsMax, 'active')).rows;
      } catch (error) {
        throw asFailure(error);
      }
    },
    async marks(teamId) {
      const [row] = await ask(reading, ofMarks.readMarks, [teamId]);
      return marksFromRow(row);
    },
    async rebuild(teamId, timeZone, onProgress = () => {}) {
      const generation = await generations.start(teamId, timeZone);
      await fill(teamId, { generation, timeZone }, onProgress).catch((error: unknown) => {
        throw asFailure(error);
      });
      await generations.activate(teamId, generation, timeZone);
      await generations.removeRetired(teamId);
    },
    removeOldRollups: (teamId) => generations.removeRetired(teamId),
  };
}
