import type { Dimension } from '../../core/rollup.ts';
import { limits } from '../../limits.ts';
import type { Auditor } from '../store.ts';
import { openReading } from './connection.ts';
import { firstKeyOf, lastKeyOf, seqOfKey, teamOfKey } from './trace-key.ts';
import { damagedPayloads, payloadsOfRow } from '../payload.ts';
import {
  auditTraceFromRow,
  prepareTallies,
  tallyColumns,
  tallyFromRow,
  traceColumns,
} from './rows.ts';

/** Shows the books on a connection of its own: its read transaction may last for minutes. */
export function openAuditor(path: string): Auditor {
  return {
    async audit(teamId, look) {
      using db = openReading(path);
      db.exec('begin');
      const counter = db
        .prepare(
          `select t.no, c.first_seq, c.last_seq, c.last_created_at_us
           from teams t left join team_counters c on c.team_no = t.no where t.id = ?`,
        )
        .get(teamId);
      if (!counter) throw new Error(`there is no team ${teamId}`);
      const no = counter['no'] as number;
      return await look({
        firstSeq: (counter['first_seq'] ?? 1) as number,
        lastSeq: (counter['last_seq'] ?? 0) as number,
        lastCreatedAtUs: (counter['last_created_at_us'] ?? 0) as number,
        traces: inChunks(
          db
            .prepare(
              `select ${seqOfKey} as seq, ${traceColumns}
               from traces where key between ${firstKeyOf} and ${lastKeyOf} order by key`,
            )
            .iterate(no, no),
          (row) => ({
            ...auditTraceFromRow(row),
            damaged: damagedPayloads(payloadsOfRow(row)),
          }),
        ),
        rollups: inChunks(
          prepareTallies(
            db,
            `select dimension, day, key, ${tallyColumns} from rollups where team_no = ?`,
          ).iterate(no),
          (row) => ({
            dimension: Number(row[0]) as Dimension,
            day: Number(row[1]),
            key: row[2] as string,
            ...tallyFromRow(row, 3),
          }),
        ),
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
          `select team_no from (select team_no from rollups union select ${teamOfKey} from traces)
           where team_no not in (select no from teams)`,
        )
        .all();
      for (const row of orphans)
        problems.push(`rows of a team that does not exist: no ${String(row['team_no'])}`);
      return problems;
    },
  };
}

async function* inChunks<R, T>(rows: Iterable<R>, convert: (row: R) => T): AsyncGenerator<T[]> {
  let chunk: T[] = [];
  for (const row of rows) {
    chunk.push(convert(row));
    if (chunk.length === limits.auditChunkRows) {
      yield chunk;
      chunk = [];
    }
  }
  if (chunk.length > 0) yield chunk;
}
