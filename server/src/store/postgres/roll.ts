import type pg from 'pg';
import { calendarOf } from '../../core/calendar.ts';
import { dimensionFields, dimensionSets } from '../../core/dimensions.ts';
import { mergeLatencies } from '../../core/latency-blob.ts';
import { RollupFold } from '../../core/rollup.ts';
import type { Rollup } from '../../core/rollup.ts';
import { uuidText } from '../../core/uuid.ts';
import { limits } from '../../limits.ts';
import { addedColumns } from '../../query/sums-sql.ts';
import { addedValues } from '../added-values.ts';
import { deltasOf } from '../rollup-deltas.ts';
import type { RollupDelta } from '../rollup-deltas.ts';
import type { TeamCounter } from '../sequencer.ts';
import { countedFromRow } from '../trace-rows.ts';
import { arrayOfPlain, arrayOfText } from './array-literal.ts';
import { abandon, beginOn, connect, run as runWithin } from './connection.ts';
import type { Begin, Values } from './connection.ts';
import { counterFromRow, marksFromRow } from './marks-rows.ts';
import type { ChangeMarks } from './marks-rows.ts';
import { isCancelled, isLockTimeout } from './postgres-failures.ts';
import { ofChanges, ofMarks, ofRollups } from './rollup-statements.ts';
import { ofOneTeam } from './statements.ts';

export interface Rolled {
  /** Traces and changes that were added. */
  rows: number;
  /** Null if another process is rolling up the team, or if there is no such generation. */
  marks: ChangeMarks | null;
  counter: TeamCounter;
  lastChangeNo: number;
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

export type FittingRoll = (teamId: string, rowsMax: number, target: RollTarget) => Promise<Rolled>;

/**
 * Rolls of tools: after one that took too long, fewer traces at once from then on. A process that was killed may have left a statement that still
 * holds the mark, so they wait for longer than one lock timeout.
 */
export function openFittingRolls(via: RollPlace): FittingRoll {
  let fitting = Infinity;
  return async (teamId, rowsMax, target) => {
    for (let attempt = 1; ;) {
      const rows = Math.min(rowsMax, fitting);
      try {
        return await roll(via, teamId, rows, target);
      } catch (error) {
        if (isLockTimeout(error) && attempt < limits.postgresAttemptsMax) {
          attempt += 1;
          continue;
        }
        if (!isCancelled(error) || rows <= limits.rollRowsMin) throw error;
        fitting = Math.max(limits.rollRowsMin, rows >> 1);
      }
    }
  };
}

/**
 * Adds changes of traces that are rolled up already, and the next traces with their present values, in one transaction. Its first statement
 * locks the mark, which keeps other rollers away; writers never touch that row. Each statement has a snapshot of its own, so a roller that has
 * waited for the lock sees what the one before it did. The present values of traces contain every change in their snapshot, so they are read with
 * the number of the last one, and are added only together with all changes up to it.
 */
export async function roll(
  { pool, begin }: RollPlace,
  teamId: string,
  rowsMax: number,
  target: RollTarget,
): Promise<Rolled> {
  const client = await connect(pool);
  try {
    const [, locked, counted, changed] = await Promise.all([
      beginOn(client, [...begin, notForTheDisk]),
      lockMarks(client, teamId, target),
      run(client, ofOneTeam.readCounter, [teamId]),
      run(client, ofChanges.readCounter, [teamId]),
    ]);
    const counter = counterFromRow(counted.rows[0]);
    const loggedNo = Number(changed.rows[0]?.['last_change_no'] ?? 0);
    const [row] = locked.rows;
    const marks = row ? marksFromRow(row) : null;
    if (!marks) {
      await run(client, 'commit');
      client.release();
      return { rows: 0, marks, counter, lastChangeNo: loggedNo };
    }
    const before = { seq: marks.seq, changeNo: marks.changeNo };
    const areAllChanges = loggedNo - before.changeNo <= rowsMax;
    const lastSeq = areAllChanges ? Math.max(counter.lastSeq, before.seq) : before.seq;
    const toSeq = Math.min(lastSeq, before.seq + rowsMax);
    const traces =
      toSeq > before.seq
        ? (await run(client, ofRollups.readNextTraces, [teamId, before.seq, toSeq])).rows
        : [];
    const lastChangeNo = Number(traces[0]?.['last_change_no'] ?? loggedNo);
    const changeNo = areAllChanges ? lastChangeNo : before.changeNo + rowsMax;
    const rows = changeNo - before.changeNo + toSeq - before.seq;
    if (rows > 0) {
      const calendar = calendarOf(marks.timeZone);
      const added = new RollupFold(dimensionSets, calendar);
      const removed = new RollupFold(dimensionSets, calendar);
      const changes =
        changeNo > before.changeNo
          ? await run(client, ofChanges.readNext, [teamId, before.changeNo, changeNo, before.seq])
          : null;
      for (const change of changes?.rows ?? []) {
        (Number(change['weight']) > 0 ? added : removed).add(countedFromRow(change));
      }
      for (const trace of traces) added.add(countedFromRow(trace));
      const addGroups = typeof target === 'object' ? ofRollups.replaceGroups : ofRollups.addGroups;
      await addRollups(client, teamId, marks.generation, added.rollups(), 1, addGroups);
      await addRollups(client, teamId, marks.generation, removed.rollups(), -1, addGroups);
      await run(client, ofMarks.move, [teamId, marks.generation, toSeq, changeNo]);
    }
    await run(client, 'commit');
    client.release();
    return { rows, marks: { ...marks, seq: toSeq, changeNo }, counter, lastChangeNo };
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

/** Adds to rollups, or takes away from them. Those that do not exist yet are added together with their groups. */
async function addRollups(
  client: pg.ClientBase,
  teamId: string,
  generation: number,
  rollups: readonly Rollup[],
  sign: 1 | -1,
  addGroups: string,
): Promise<void> {
  const deltas = deltasOf(rollups);
  if (deltas.length === 0) return;
  const keys = keysOf(deltas);
  const stored = await run(client, ofRollups.readLatencies, [teamId, generation, ...keys]);
  const found = new Map(
    stored.rows.map((row) => [Number(row['at']), row['latencies'] as Uint8Array]),
  );
  const histograms = deltas.map(({ latencies }, i) => {
    const counts = sign === 1 ? latencies : latencies.map(([bin, count]) => [bin, -count] as const);
    return mergeLatencies(found.get(i + 1) ?? new Uint8Array(), counts);
  });
  const newDeltas = deltas.filter((_, i) => !found.has(i + 1));
  await Promise.all([
    run(client, ofRollups.addRows, [
      teamId,
      generation,
      ...rangesOf(histograms, keys),
      ...sumsOf(deltas, sign),
    ]),
    ...(newDeltas.length > 0 ? [run(client, addGroups, [teamId, ...groupValues(newDeltas)])] : []),
    ...(sign === -1 ? [run(client, ofRollups.removeEmpty, [teamId, generation, ...keys])] : []),
  ]);
}

function keysOf(rows: readonly RollupDelta[]): Values {
  return [
    arrayOfPlain(rows.map(({ set }) => set)),
    arrayOfPlain(rows.map(({ grain }) => grain)),
    arrayOfPlain(rows.map(({ bucket }) => bucket)),
    arrayOfPlain(rows.map(({ hash }) => uuidText(hash))),
  ];
}

/** All histograms as one parameter, the keys, and the range of each histogram. */
function rangesOf(histograms: readonly Uint8Array[], keys: Values): Values {
  let next = 1;
  const starts = histograms.map(({ length }) => (next += length) - length);
  return [
    Buffer.concat(histograms),
    ...keys,
    arrayOfPlain(starts),
    arrayOfPlain(histograms.map(({ length }) => length)),
  ];
}

/** One array for each of the added columns. */
function sumsOf(deltas: readonly RollupDelta[], sign: 1 | -1): Values {
  const values = deltas.map(({ measures }) => addedValues(measures, sign));
  return addedColumns.map((_, i) => arrayOfPlain(values.map((own) => String(own[i]))));
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
