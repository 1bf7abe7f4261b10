import type pg from 'pg';
import { anotherRebuild } from '../roller.ts';
import type { TeamMarks } from '../team-marks.ts';
import { inTransaction, run } from './connection.ts';
import type { Pools } from './connection.ts';
import { counterFromRow, marksFromRow } from './marks-rows.ts';
import { ofChanges, ofMarks, ofRollups } from './rollup-statements.ts';
import { ofOneTeam } from './statements.ts';

/**
 * The generations of a team's rollups. Their numbers only grow: one below the active generation is retired, and one above it is being
 * built. Rows are added and removed only under the lock of the generation's marks, and the marks are removed with the last row, so no
 * row is without marks.
 */
export interface Generations {
  /** The generation to fill: one that is being built for the same time zone, or a new one. Others that are being built are removed. */
  start(teamId: string, timeZone: string): Promise<number>;
  /** Makes the generation active, unless another rebuild has done that already. */
  activate(teamId: string, generation: number, timeZone: string): Promise<void>;
  removeRetired(teamId: string): Promise<void>;
}

interface GenerationMarks extends TeamMarks {
  isActive: boolean;
}

export function openGenerations({ writing, begin }: Pools): Generations {
  const inOne = <T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
    inTransaction(writing, begin, work);

  /** In short transactions. It does nothing if the generation has become active or is gone. */
  async function remove(teamId: string, generation: number): Promise<void> {
    for (let isMore = true; isMore;) {
      isMore = await inOne(async (client) => {
        const [marks] = (await run(client, ofMarks.lockMarksOf, [teamId, generation])).rows;
        if (!marks || marks['is_active'] === true) return false;
        const [after] = (await run(client, ofRollups.readKeyAfter, [teamId, generation])).rows;
        if (after) {
          const { set_no, grain, bucket, group_hash } = after;
          const values = [teamId, generation, set_no, grain, bucket, group_hash];
          await run(client, ofRollups.removeRowsBefore, values);
          return true;
        }
        await run(client, ofRollups.removeRows, [teamId, generation]);
        await run(client, ofMarks.removeMarks, [teamId, generation]);
        return false;
      });
    }
  }

  return {
    async start(teamId, timeZone) {
      const { generation, others } = await inOne(async (client) => {
        const { active, inactive } = await lockAllMarks(client, teamId);
        const others = inactive.filter(
          (marks) => marks.timeZone !== timeZone || isRetired(marks, active),
        );
        const started = inactive.find((marks) => !others.includes(marks));
        if (started) return { generation: started.generation, others };
        const [newest] = (await run(client, ofMarks.readNewestGeneration, [teamId])).rows;
        const next = Number(newest?.['generation']) + 1;
        const { firstSeq } = counterFromRow(
          (await run(client, ofOneTeam.readCounter, [teamId])).rows[0],
        );
        const [changes] = (await run(client, ofChanges.readCounter, [teamId])).rows;
        const changeNo = Number(changes?.['last_change_no'] ?? 0);
        const values = [teamId, next, timeZone, false, firstSeq - 1, changeNo];
        await run(client, ofMarks.addMarks, values);
        return { generation: next, others };
      });
      for (const other of others) await remove(teamId, other.generation);
      return generation;
    },

    async activate(teamId, generation, timeZone) {
      await inOne(async (client) => {
        const { active, inactive } = await lockAllMarks(client, teamId);
        if (active.generation === generation && active.timeZone === timeZone) return;
        const own = inactive.find((marks) => marks.generation === generation);
        if (own?.timeZone !== timeZone || isRetired(own, active)) throw anotherRebuild();
        // Two statements: at no time may two rows be active.
        await run(client, ofMarks.deactivate, [teamId]);
        await run(client, ofMarks.activate, [teamId, generation]);
      });
    },

    async removeRetired(teamId) {
      const retired = await inOne(async (client) => {
        const { active, inactive } = await readAll(client, teamId);
        return inactive.filter((marks) => isRetired(marks, active));
      });
      for (const { generation } of retired) await remove(teamId, generation);
    },
  };
}

function isRetired({ generation }: TeamMarks, active: TeamMarks): boolean {
  return generation < active.generation;
}

interface AllMarks {
  active: GenerationMarks;
  inactive: GenerationMarks[];
}

/** With the locks, nothing is rolled up, and no other transaction adds, removes or activates a generation. */
async function lockAllMarks(client: pg.ClientBase, teamId: string): Promise<AllMarks> {
  // The rows are read after the locks: another transaction may have changed them while this one waited.
  await run(client, ofMarks.lockAllMarks, [teamId]);
  return readAll(client, teamId);
}

async function readAll(client: pg.ClientBase, teamId: string): Promise<AllMarks> {
  const { rows } = await run(client, ofMarks.readAllMarks, [teamId]);
  const all = rows.map((row) => ({ ...marksFromRow(row), isActive: row['is_active'] === true }));
  const active = all.find(({ isActive }) => isActive);
  if (!active) throw new Error(`team ${teamId} has no marks`);
  return { active, inactive: all.filter(({ isActive }) => !isActive) };
}
