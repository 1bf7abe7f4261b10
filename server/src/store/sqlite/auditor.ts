import type { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';
import type { AuditedRollup, AuditedTrace, Auditor, StoredLookup } from '../audit.ts';
import { auditedFromRow, damageFromRow, payloadColumns, traceColumns } from '../trace-rows.ts';
import { openReading } from './connection.ts';
import { unpackSeqs } from './lookup-blocks.ts';
import { lookupBlocks } from './lookup-repair.ts';
import { activeMarks } from './roller.ts';
import { groupOfValues, rollupColumns, rollupTables } from './rollup-values.ts';
import type { RollupValues } from './rollup-values.ts';
import { openRollupTables } from './rollup-tables.ts';
import { firstRowIdOf, lastRowIdOf, seqOfRowId, teamOfRowId } from './row-id.ts';
import { openTraceTables } from './trace-tables.ts';

/** Each audit has its own connection, since its read transaction may take minutes. */
export function openAuditor(path: string): Auditor {
  return {
    async audit(teamId, look) {
      using db = openReading(path);
      db.exec('begin');
      const { teamNo, ...counter } = openTraceTables(db).counter(teamId);
      const marks = activeMarks(openRollupTables(db).marks(teamNo), teamId);
      return await look({
        ...counter,
        marks,
        traces: inChunks(auditedTraces(db, teamNo)),
        rollups: inChunks(rollupsOf(db, teamNo, marks.generation)),
        lookups: inChunks(lookupsOf(db, teamNo)),
      });
    },

    async checkStorage() {
      using db = openReading(path);
      const problems = db
        .prepare('pragma integrity_check')
        .all()
        .map((row) => String(row['integrity_check']))
        .filter((line) => line !== 'ok');
      const orphans = db
        .prepare(
          `select team_no from (${tablesOfTeams.join(' union ')}) where team_no not in (select no from teams)`,
        )
        .all();
      for (const row of orphans)
        problems.push(`rows of a team that does not exist: team number ${String(row['team_no'])}`);
      const lost = db.prepare(
        'select count(*) as n from trace_payloads where key not in (select key from traces)',
      );
      const count = Number(lost.get()?.['n']);
      if (count > 0) problems.push(`payloads without a trace: ${count}`);
      return problems;
    },
  };
}

const tablesOfTeams = [
  ...['team_marks', 'rollup_groups', 'rollup_days'].map((table) => `select team_no from ${table}`),
  `select ${teamOfRowId} as team_no from traces`,
];

/** What of each trace cannot be read. */
export function* damageOf(
  db: DatabaseSync,
  teamNo: number,
): Generator<Pick<AuditedTrace, 'seq' | 'id' | 'damaged'>> {
  for (const row of tracesOf(db, teamNo, `id, ${payloadColumns}`)) yield damageFromRow(row);
}

/** Every trace of a team, each payload decoded. */
function* auditedTraces(db: DatabaseSync, teamNo: number): Generator<AuditedTrace> {
  for (const row of tracesOf(db, teamNo, traceColumns)) yield auditedFromRow(row);
}

function tracesOf(db: DatabaseSync, teamNo: number, columns: string) {
  return db
    .prepare(
      `select ${seqOfRowId} as seq, ${columns} from traces left join trace_payloads using (key)
       where key between ${firstRowIdOf} and ${lastRowIdOf} order by key`,
    )
    .iterate(teamNo, teamNo);
}

function* rollupsOf(
  db: DatabaseSync,
  teamNo: number,
  generation: number,
): Generator<AuditedRollup> {
  const read = db.prepare(
    `select r.group_hash, ${rollupColumns} from ${rollupTables('left join')} where r.team_no = ? and r.generation = ?`,
  );
  read.setReturnArrays(true);
  for (const row of read.iterate(teamNo, generation)) {
    const [hash, ...values] = row as unknown as [Uint8Array, ...RollupValues];
    const [set, grain, bucket, calls, sums, latencies, isError] = values;
    const group = isError === null ? null : groupOfValues(values);
    yield { set, grain, bucket, hash, calls, sums, latencies, group };
  }
}

/** One block after the other, since the numbers of a block are stored by hash. */
function* lookupsOf(db: DatabaseSync, teamNo: number): Generator<StoredLookup> {
  const read = db.prepare('select hash, seqs from trace_lookups where team_no = ? and block = ?');
  for (const block of lookupBlocks(db, teamNo)) {
    const ofBlock = read.all(teamNo, block).flatMap(({ hash, seqs }) =>
      unpackSeqs({ block, seqs: seqs as Uint8Array }).map((seq) => ({
        seq,
        hash: hash as number,
      })),
    );
    yield* ofBlock.sort((a, b) => a.seq - b.seq);
  }
}

async function* inChunks<T>(items: Iterable<T>): AsyncGenerator<T[]> {
  let chunk: T[] = [];
  for (const item of items) {
    chunk.push(item);
    if (chunk.length === limits.auditChunkRows) {
      yield chunk;
      chunk = [];
    }
  }
  if (chunk.length > 0) yield chunk;
}
