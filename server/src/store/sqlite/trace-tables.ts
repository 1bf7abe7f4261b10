import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { compile } from '../../core/compile.ts';
import { measureNames } from '../../core/rollup.ts';
import type { RollupDelta } from '../../core/rollup.ts';
import { payloadNames } from '../../core/trace-fields.ts';
import { Failure } from '../../errors.ts';
import type { TeamCounter } from '../sequencer.ts';
import { TeamBatch } from '../team-batch.ts';
import type { AddRow } from '../team-batch.ts';
import { narrowColumns, narrowSources } from '../trace-rows.ts';
import { measureColumns } from './measures-rows.ts';
import { rowIdOf } from './row-id.ts';
import { isOverflow } from './sqlite-failures.ts';

/** A team's traces, sums and counter, always written together in the caller's transaction. */
export interface TraceTables {
  counter(teamId: string): TeamRow;
  /** Opens a batch whose rows are inserted immediately. */
  openBatch(teamId: string): TeamRows;
  /** Writes the sums and the counter of a batch. */
  finish(rows: TeamRows): void;
}

export interface TeamRow extends TeamCounter {
  teamNo: number;
}

export interface TeamRows {
  teamNo: number;
  batch: TeamBatch;
}

const traceColumns = [
  'key',
  'id',
  'created_at_us',
  ...narrowColumns,
  'zstd_mask',
  ...payloadNames,
].join(', ');
// The row id is made from two of the values.
const insertTraceSql = `insert into traces (${traceColumns}) values (${rowIdOf}, ${marks(3 + narrowColumns.length + payloadNames.length)})`;
const addRowTo = compile<(insert: StatementSync, teamNo: number) => AddRow>(
  `(insert, teamNo) => ({ seq, idBytes, createdAtUs }, trace, payloads) => {
    insert.run(teamNo, seq, idBytes, createdAtUs, ${narrowSources.join(', ')}, payloads.zstdMask,
      ${payloadNames.map((name) => `payloads.${name}`).join(', ')});
  }`,
);
const addedUp = measureNames.map((name) => `${name} = ${name} + excluded.${name}`).join(', ');
const addRollupSql = `
  insert into rollups (team_no, dimension, day, key, ${measureColumns}) values (${marks(4 + measureNames.length)})
  on conflict do update set ${addedUp}`;

function marks(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ');
}

export function openTraceTables(db: DatabaseSync): TraceTables {
  const readCounter = db.prepare(`
    select t.no, coalesce(c.first_seq, 1) as first_seq, coalesce(c.last_seq, 0) as last_seq,
      coalesce(c.last_created_at_us, 0) as last_created_at_us
    from teams t left join team_counters c on c.team_no = t.no where t.id = ?`);
  const writeCounter = db.prepare(`
    insert into team_counters (team_no, first_seq, last_seq, last_created_at_us) values (?, ?, ?, ?)
    on conflict do update set last_seq = excluded.last_seq, last_created_at_us = excluded.last_created_at_us`);
  const insertTrace = db.prepare(insertTraceSql);
  // It returns the id of the new row, which may exceed 2^53.
  insertTrace.setReadBigInts(true);
  const addRollup = db.prepare(addRollupSql);

  function counter(teamId: string): TeamRow {
    const row = readCounter.get(teamId);
    if (!row) throw new Error(`there is no team ${teamId}`);
    return {
      teamNo: row['no'] as number,
      firstSeq: row['first_seq'] as number,
      lastSeq: row['last_seq'] as number,
      lastUs: row['last_created_at_us'] as number,
    };
  }

  function addDelta(teamNo: number, { dimension, day, group, measures }: RollupDelta): void {
    try {
      addRollup.run(teamNo, dimension, day, group, ...measureNames.map((name) => measures[name]));
    } catch (error) {
      // Only the sum of costs can become that large: 9.2 million traces of a million dollars.
      throw isOverflow(error) ? new Failure('total_cost_too_large', { cause: error }) : error;
    }
  }

  return {
    counter,
    openBatch(teamId) {
      const { teamNo, ...before } = counter(teamId);
      const addRow = addRowTo(insertTrace, teamNo);
      return { teamNo, batch: new TeamBatch(teamId, before, addRow) };
    },
    finish({ teamNo, batch }) {
      const { firstSeq, lastSeq, lastUs } = batch.counter;
      writeCounter.run(teamNo, firstSeq, lastSeq, lastUs);
      for (const delta of batch.deltas().flat()) addDelta(teamNo, delta);
    },
  };
}
