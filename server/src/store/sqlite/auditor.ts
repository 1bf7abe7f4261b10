import type { DatabaseSync } from 'node:sqlite';
import type { Dimension, Rollup } from '../../core/rollup.ts';
import { payloadNames } from '../../core/trace-fields.ts';
import { limits } from '../../limits.ts';
import type { AuditedTrace, Auditor } from '../audit.ts';
import { auditedFromRow, damageFromRow, traceColumns } from '../trace-rows.ts';
import { openReading } from './connection.ts';
import { measureColumns, measuresFromRow, prepareMeasures } from './measures-rows.ts';
import { firstRowIdOf, lastRowIdOf, seqOfRowId, teamOfRowId } from './row-id.ts';
import { openTraceTables } from './trace-tables.ts';

/** Each audit has a connection of its own: its read transaction may last for minutes. */
export function openAuditor(path: string): Auditor {
  return {
    async audit(teamId, look) {
      using db = openReading(path);
      db.exec('begin');
      const { teamNo, ...counter } = openTraceTables(db).counter(teamId);
      return await look({
        ...counter,
        traces: inChunks(auditedTraces(db, teamNo)),
        rollups: inChunks(rollupsOf(db, teamNo)),
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
          `select team_no from (select team_no from rollups union select ${teamOfRowId} from traces)
           where team_no not in (select no from teams)`,
        )
        .all();
      for (const row of orphans)
        problems.push(`rows of a team that does not exist: no ${String(row['team_no'])}`);
      return problems;
    },
  };
}

/** What of each trace cannot be read. It reads only columns of the first schema, so a file that was not migrated yet will do. */
export function* damageOf(
  db: DatabaseSync,
  teamNo: number,
): Generator<Pick<AuditedTrace, 'seq' | 'id' | 'damaged'>> {
  const columns = ['id', 'zstd_mask', ...payloadNames].join(', ');
  for (const row of tracesOf(db, teamNo, columns)) yield damageFromRow(row);
}

/** Every trace of a team, each payload decoded. */
function* auditedTraces(db: DatabaseSync, teamNo: number): Generator<AuditedTrace> {
  for (const row of tracesOf(db, teamNo, traceColumns)) yield auditedFromRow(row);
}

function tracesOf(db: DatabaseSync, teamNo: number, columns: string) {
  return db
    .prepare(
      `select ${seqOfRowId} as seq, ${columns} from traces
       where key between ${firstRowIdOf} and ${lastRowIdOf} order by key`,
    )
    .iterate(teamNo, teamNo);
}

function* rollupsOf(db: DatabaseSync, teamNo: number): Generator<Rollup> {
  const sql = `select dimension, day, key, ${measureColumns} from rollups where team_no = ?`;
  for (const row of prepareMeasures(db, sql).iterate(teamNo)) {
    const [dimension, day, group] = row;
    yield {
      dimension: Number(dimension) as Dimension,
      day: Number(day),
      group: group as string,
      measures: measuresFromRow(row, 3),
    };
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
