import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { compile } from '../../core/compile.ts';
import { narrowNames, payloadNames, unusualNames } from '../../core/trace-fields.ts';
import { latencyBinOf } from '../../core/measures.ts';
import { costOf } from '../../core/trace-cost.ts';
import { hasPayloads } from '../payload.ts';
import type { TeamCounter } from '../sequencer.ts';
import { TeamBatch } from '../team-batch.ts';
import type { AddRow } from '../team-batch.ts';
import { addedColumns, narrowColumns, narrowSources, payloadColumns } from '../trace-rows.ts';
import { rowIdOf } from './row-id.ts';

/** A team's traces and counter, always written together in the caller's transaction. */
export interface TraceTables {
  counter(teamId: string): TeamRow;
  /** Opens a batch whose rows are inserted immediately. */
  openBatch(teamId: string): TeamRows;
  /** Writes the counter of a batch. */
  finish(rows: TeamRows): void;
}

export interface TeamRow extends TeamCounter {
  teamNo: number;
}

export interface TeamRows {
  teamNo: number;
  batch: TeamBatch;
}

/** Most traces have none of the unusual fields. Binding a value for each of their columns would take a tenth of the insert. */
const unusual = narrowNames.filter((name) => unusualNames.includes(name));
const usual = narrowNames.flatMap((name, i) => (unusual.includes(name) ? [] : [i]));

// The row id is made from two of the values.
function insertTraceSql(columns: readonly string[]): string {
  return `
    insert into traces (key, id, created_at_us, ${columns.join(', ')}, ${addedColumns})
    values (${rowIdOf}, ${marks(2 + columns.length + 3)})`;
}
const insertPayloadsSql = `
  insert into trace_payloads (key, ${payloadColumns}) values (${rowIdOf}, ${marks(2 + payloadNames.length)})`;

interface Inserts {
  usual: StatementSync;
  whole: StatementSync;
  payloads: StatementSync;
}

const addRowTo = compile<(inserts: Inserts, teamNo: number) => AddRow>(
  `({ usual, whole, payloads: insertPayloads }, teamNo) => ({ seq, idBytes, createdAtUs }, trace, payloads) => {
    const cost = costOf(trace);
    const micros = cost === null ? null : cost.micros;
    const picos = cost === null ? null : cost.picos;
    const bin = latencyBinOf(trace);
    if (${unusual.map((name) => `trace.${name} === null`).join(' && ')}) {
      usual.run(teamNo, seq, idBytes, createdAtUs, ${usual.map((i) => narrowSources[i]).join(', ')}, micros, picos, bin);
    } else {
      whole.run(teamNo, seq, idBytes, createdAtUs, ${narrowSources.join(', ')}, micros, picos, bin);
    }
    if (hasPayloads(payloads)) {
      insertPayloads.run(teamNo, seq, payloads.zstdMask, payloads.checksum,
        ${payloadNames.map((name) => `payloads.${name}`).join(', ')});
    }
  }`,
  { hasPayloads, costOf, latencyBinOf },
);

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
  const inserts: Inserts = {
    usual: db.prepare(insertTraceSql(usual.map((at) => narrowColumns[at] ?? ''))),
    whole: db.prepare(insertTraceSql(narrowColumns)),
    payloads: db.prepare(insertPayloadsSql),
  };
  // They return the id of the new row, which may exceed 2^53.
  for (const insert of Object.values(inserts)) insert.setReadBigInts(true);

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

  return {
    counter,
    openBatch(teamId) {
      const { teamNo, ...before } = counter(teamId);
      const addRow = addRowTo(inserts, teamNo);
      return { teamNo, batch: new TeamBatch(teamId, before, addRow) };
    },
    finish({ teamNo, batch }) {
      const { firstSeq, lastSeq, lastUs } = batch.counter;
      writeCounter.run(teamNo, firstSeq, lastSeq, lastUs);
    },
  };
}
