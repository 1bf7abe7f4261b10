import type pg from 'pg';
import type { RollSpeed } from '../../core/dimensions.ts';
import { limits } from '../../limits.ts';
import type { UpgradeProgress } from '../store.ts';
import { TeamBatch } from '../team-batch.ts';
import { defaultTimeZone, firstGeneration } from '../team-marks.ts';
import { packedFromRow } from '../trace-rows.ts';
import { ask, inTransaction, run } from './connection.ts';
import type { Begin } from './connection.ts';
import { lockTeam } from './batch-statements.ts';
import { openFittingRolls } from './roll.ts';
import type { FittingRoll } from './roll.ts';
import { ofMarks } from './rollup-statements.ts';
import { ofOneTeam, ofSmallTables, overAllTeams } from './statements.ts';
import { oldTables } from './tables.ts';
import { TraceColumns } from './trace-columns.ts';
import { insertColumns } from './transfer.ts';

/** Reads pg_class, so that a table that another server has just dropped is not found. */
const readOldTable = `
  select exists (select 1 from pg_class where oid = to_regclass('${oldTables[0]}')) as there`;

/** Whether the rows of schema 3 are not all moved yet. */
export async function hasOldTraces(client: pg.ClientBase): Promise<boolean> {
  return (await run(client, readOldTable)).rows[0]?.['there'] === true;
}

interface Move {
  pool: pg.Pool;
  begin: Begin;
  onUpgrade(progress: UpgradeProgress): void;
}

/**
 * Moves the traces of schema 3 to the tables of schema 4, rolls them up and drops the old tables. Each step is a short transaction that
 * starts where the last one ended, so it can be interrupted at any time.
 */
export async function moveOldTraces(move: Move): Promise<void> {
  const { pool, begin, onUpgrade } = move;
  for (const { id } of await ask(pool, ofSmallTables.readTeamIds, [])) {
    const marks = [id, firstGeneration, defaultTimeZone, true, 0];
    await inTransaction(pool, begin, (client) => run(client, ofMarks.addMarks, marks));
  }
  const counters = (await ask(pool, overAllTeams.readCounters, [])).map((row) => ({
    teamId: row['team_id'] as string,
    firstSeq: Number(row['first_seq']),
    traces: Number(row['last_seq']) - Number(row['first_seq']) + 1,
  }));
  const total = counters.reduce((sum, { traces }) => sum + traces, 0);
  let before = 0;
  for (const { teamId, firstSeq, traces } of counters) {
    await moveTeam(move, teamId, (seq) =>
      onUpgrade({ step: 'moving traces', done: before + seq - firstSeq + 1, total }),
    );
    before += traces;
  }
  // Each trace is added up twice, since the rollups have two speeds.
  let added = 0;
  const roll = openFittingRolls(move);
  for (const { teamId, firstSeq, traces } of counters) {
    for (const speed of ['hot', 'wide'] as const) {
      await rollTeam(roll, teamId, speed, (seq) =>
        onUpgrade({ step: 'adding up', done: added + seq - firstSeq + 1, total: 2 * total }),
      );
      added += traces;
    }
  }
  await inTransaction(pool, begin, async (client) => {
    for (const table of oldTables)
      await run(client, `drop table ${table}`, [], limits.postgresUnhurriedMsMax);
  });
}

async function moveTeam(
  { pool, begin }: Move,
  teamId: string,
  onMoved: (seq: number) => void,
): Promise<void> {
  for (;;) {
    const seq = await inTransaction(pool, begin, async (client) => {
      const counter = await lockTeam(client, teamId);
      const [moved] = (await run(client, ofOneTeam.readMovedSeq, [teamId])).rows;
      const lastSeq = Number(moved?.['seq'] ?? counter.firstSeq - 1);
      const { rows } = await run(client, ofOneTeam.readOldTraces, [teamId, lastSeq]);
      const traces = rows.map(packedFromRow);
      if (traces.length === 0) return null;
      const columns = new TraceColumns();
      const batch = new TeamBatch(teamId, { ...counter, lastSeq }, (...row) =>
        columns.add(teamId, ...row),
      );
      batch.take(traces);
      await insertColumns(client, teamId, columns);
      return batch.counter.lastSeq;
    });
    if (seq === null) return;
    onMoved(seq);
  }
}

async function rollTeam(
  roll: FittingRoll,
  teamId: string,
  speed: RollSpeed,
  onRolled: (seq: number) => void,
): Promise<void> {
  for (;;) {
    const { rows, marks } = await roll({ teamId, speed }, limits.rollRowsMax, 'active');
    if (!marks || rows === 0) return;
    onRolled(marks.rolledSeq[speed]);
  }
}
