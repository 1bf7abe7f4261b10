import type pg from 'pg';
import { calendarOf } from '../../core/calendar.ts';
import { dimensionFields } from '../../core/dimensions.ts';
import type { RollSpeed } from '../../core/dimensions.ts';
import { RollupFold } from '../../core/rollup.ts';
import { uuidText } from '../../core/uuid.ts';
import { limits } from '../../limits.ts';
import { missingRollup } from '../repricer.ts';
import { addedTo, deltasOf } from '../rollup-rows.ts';
import type { RollupDelta, RollupRow } from '../rollup-rows.ts';
import type { TeamCounter } from '../sequencer.ts';
import type { TeamMarks } from '../team-marks.ts';
import { countedFromRow } from '../trace-rows.ts';
import { arrayOfPlain, arrayOfText } from './array-literal.ts';
import { abandon, beginOn, connect, run as runWithin } from './connection.ts';
import type { Begin, Values } from './connection.ts';
import { counterFromRow, marksFromRow } from './marks-rows.ts';
import { isCancelled } from './postgres-failures.ts';
import { ofMarks, ofRollups } from './rollup-statements.ts';
import { ofOneTeam } from './statements.ts';

export interface Rolled {
  rows: number;
  /** Null if another process is rolling up the team, or if there is no such generation. */
  marks: TeamMarks | null;
  counter: TeamCounter;
}

/** Which rollups are filled: those of the active generation, if no other process is busy with them or after it; or of another one. */
export type RollTarget = 'active if free' | 'active' | { generation: number };

export interface RollPlace {
  pool: pg.Pool;
  begin: Begin;
}

/** PostgreSQL ends a statement that takes too long first, so that the connection can be used again and the error says why. */
const answerMsMax = 2 * limits.postgresAnswerMsMax;

function run(client: pg.ClientBase, text: string, values: Values = []) {
  return runWithin(client, text, values, answerMsMax);
}

export type FittingRoll = (
  job: { teamId: string; speed: RollSpeed },
  rowsMax: number,
  target: RollTarget,
) => Promise<Rolled>;

/** Rolls of tools: after one that took too long, fewer traces at once from then on. */
export function openFittingRolls(via: RollPlace): FittingRoll {
  const fitting: Record<RollSpeed, number> = { hot: Infinity, wide: Infinity };
  return async (job, rowsMax, target) => {
    for (;;) {
      const rows = Math.min(rowsMax, fitting[job.speed]);
      try {
        return await rollOnce(via, job, rows, target);
      } catch (error) {
        if (!isCancelled(error) || rows <= limits.rollRowsMin) throw error;
        fitting[job.speed] = Math.max(limits.rollRowsMin, rows >> 1);
      }
    }
  };
}

/**
 * Adds the next traces of a team to its rollups in one transaction. The lock on the marks keeps other rollers away; writers never
 * touch that row.
 */
export async function rollOnce(
  { pool, begin }: RollPlace,
  { teamId, speed }: { teamId: string; speed: RollSpeed },
  rowsMax: number,
  target: RollTarget,
): Promise<Rolled> {
  const client = await connect(pool);
  try {
    // The counter is read before the traces, so every trace that it counts is seen.
    const [, locked, counted] = await Promise.all([
      beginOn(client, [...begin, notForTheDisk]),
      lockMarks(client, teamId, target),
      run(client, ofOneTeam.readCounter, [teamId]),
    ]);
    const counter = counterFromRow(counted.rows[0]);
    const [row] = locked.rows;
    const marks = row ? marksFromRow(row) : null;
    const fromSeq = marks?.rolledSeq[speed] ?? counter.lastSeq;
    const toSeq = Math.min(counter.lastSeq, fromSeq + rowsMax);
    if (!marks || toSeq <= fromSeq) {
      await run(client, 'commit');
      client.release();
      return { rows: 0, marks, counter };
    }
    const fold = new RollupFold(speed, calendarOf(marks.timeZone));
    const { rows } = await run(client, ofRollups.readNextTraces, [teamId, fromSeq, toSeq]);
    for (const trace of rows) fold.add(countedFromRow(trace));
    const addGroups = typeof target === 'object' ? ofRollups.replaceGroups : ofRollups.addGroups;
    await writeRollups(client, teamId, marks.generation, deltasOf(fold.rollups()), addGroups);
    const setSeq = speed === 'hot' ? ofMarks.setHotSeq : ofMarks.setWideSeq;
    await Promise.all([
      run(client, setSeq, [teamId, marks.generation, toSeq]),
      run(client, 'commit'),
    ]);
    client.release();
    const rolledSeq = { ...marks.rolledSeq, [speed]: toSeq };
    return { rows: toSeq - fromSeq, marks: { ...marks, rolledSeq }, counter };
  } catch (error) {
    await abandon(client, error);
    throw error;
  }
}

function lockMarks(client: pg.ClientBase, teamId: string, target: RollTarget) {
  if (target === 'active if free') return run(client, ofMarks.lockFreeMarks, [teamId]);
  if (target === 'active') return run(client, ofMarks.lockMarks, [teamId]);
  return run(client, ofMarks.lockMarksOf, [teamId, target.generation]);
}

/** If a crash loses the last rolls, marks and rollups are both older, and the traces are rolled up again. So no roll waits for the disk. */
const notForTheDisk = 'set local synchronous_commit = off';

/** Adds to rollups. Those that do not exist yet are added together with their groups; without a statement for groups, all must exist. */
export async function writeRollups(
  client: pg.ClientBase,
  teamId: string,
  generation: number,
  deltas: readonly RollupDelta[],
  addGroups: string | null,
): Promise<void> {
  if (deltas.length === 0) return;
  const stored = await run(client, ofRollups.readRows, [teamId, generation, ...keysOf(deltas)]);
  const found = new Map(
    stored.rows.map((row) => [
      Number(row['at']),
      {
        calls: Number(row['calls']),
        sums: row['sums'] as Uint8Array,
        latencies: row['latencies'] as Uint8Array,
      },
    ]),
  );

  const added = deltas.filter((_, i) => !found.has(i + 1));
  if (addGroups === null && added.length > 0) throw missingRollup();
  const rows = deltas.map((delta, i) => addedTo(found.get(i + 1), delta));
  await Promise.all([
    run(client, ofRollups.writeRows, [teamId, generation, ...rowValues(rows)]),
    ...(addGroups !== null && added.length > 0
      ? [run(client, addGroups, [teamId, ...groupValues(added)])]
      : []),
  ]);
}

function keysOf(rows: readonly Pick<RollupRow, 'set' | 'grain' | 'bucket' | 'hash'>[]): Values {
  return [
    arrayOfPlain(rows.map(({ set }) => set)),
    arrayOfPlain(rows.map(({ grain }) => grain)),
    arrayOfPlain(rows.map(({ bucket }) => bucket)),
    arrayOfPlain(rows.map(({ hash }) => uuidText(hash))),
  ];
}

/** All sums and histograms are one parameter, and each row has its range in it. */
function rowValues(rows: readonly RollupRow[]): Values {
  let next = 1;
  const starts: number[] = [];
  for (const { sums, latencies } of rows) {
    starts.push(next);
    next += sums.length + latencies.length;
  }
  return [
    Buffer.concat(rows.flatMap(({ sums, latencies }) => [sums, latencies])),
    ...keysOf(rows),
    arrayOfPlain(rows.map(({ calls }) => calls)),
    arrayOfPlain(starts),
    arrayOfPlain(rows.map(({ sums }) => sums.length)),
    arrayOfPlain(rows.map(({ latencies }) => latencies.length)),
  ];
}

/** Each group once, ordered by its hash, so that two rollers of different generations cannot deadlock. */
function groupValues(deltas: readonly RollupDelta[]): Values {
  const byId = new Map(deltas.map((delta) => [uuidText(delta.hash), delta]));
  const groups = [...byId].sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    arrayOfPlain(groups.map(([id]) => id)),
    arrayOfPlain(groups.map(([, { set }]) => set)),
    arrayOfPlain(groups.map(([, { group }]) => group.status === 'error')),
    ...dimensionFields.map((name) =>
      arrayOfText(groups.map(([, { group }]) => group[name] ?? null)),
    ),
  ];
}
