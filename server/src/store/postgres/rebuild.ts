import { setTimeout as delay } from 'node:timers/promises';
import type { RollSpeed } from '../../core/dimensions.ts';
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
    const filled: Record<RollSpeed, number> = { hot: 0, wide: 0 };
    // The small sets again at the end: most reads need them, so their tail should be short when the generation becomes active.
    for (const speed of ['hot', 'wide', 'hot'] as const) {
      for (;;) {
        const startMs = performance.now();
        const rolled = await roll({ teamId, speed }, limits.rebuildRowsMax, {
          generation,
        });
        const { marks: now, counter } = rolled;
        if (now?.timeZone !== timeZone) throw anotherRebuild();
        const before = counter.firstSeq - 1;
        filled[speed] = now.rolledSeq[speed] - before;
        onProgress(Math.floor((filled.hot + filled.wide) / 2), counter.lastSeq - before);
        if (now.rolledSeq[speed] >= counter.lastSeq) break;
        // So that the rebuild uses at most half of the database's time.
        await delay(performance.now() - startMs);
      }
    }
  }

  return {
    async roll(teamId, speed, rowsMax) {
      try {
        return (await roll({ teamId, speed }, rowsMax, 'active')).rows;
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
