import type { DatabaseSync } from 'node:sqlite';
import type { CountedTrace } from '../../core/rollup.ts';
import { limits } from '../../limits.ts';
import { withStoredSums } from '../audit.ts';
import type { AuditedRollup, AuditedTrace, Auditor, StoredLookup } from '../audit.ts';
import {
  addedColumns,
  auditedFromRow,
  damageFromRow,
  narrowColumns,
  payloadColumns,
  traceColumns,
} from '../trace-rows.ts';
import { prepareArrays } from './array-statement.ts';
import { countedOfValues } from './counted-traces.ts';
import { unpackSeqs } from './lookup-blocks.ts';
import { lookupBlocks } from './lookup-repair.ts';
import { hasSchema, openReadingBoth } from './rollup-file.ts';
import { groupColumns, groupLength, groupOfColumns } from './rollup-values.ts';
import { addedColumns as addedNames } from '../../query/sums-sql.ts';
import { firstRowIdOf, lastRowIdOf, rowIdOf, seqMax, seqOfRowId, teamOfRowId } from './row-id.ts';
import { TeamSnapshots } from './team-snapshot.ts';
import { openTraceTables } from './trace-tables.ts';

/** Each audit has its own connection, since its read transaction may take minutes. */
export function openAuditor(path: string): Auditor {
  return {
    async audit(teamId, look) {
      using db = openReadingBoth(path);
      const { teamNo, marks, changeNo } = new TeamSnapshots(db).begin(teamId);
      const { teamNo: _, ...counter } = openTraceTables(db).counter(teamId);
      const pending = pendingChanges(db, teamNo, changeNo, marks.seq);
      return await look({
        ...counter,
        marks,
        traces: inChunks(auditedTraces(db, teamNo, pending)),
        rollups: inChunks(rollupsOf(db, teamNo, marks.generation)),
        lookups: inChunks(lookupsOf(db, teamNo)),
      });
    },

    async checkStorage() {
      using db = openReadingBoth(path);
      const problems = ['main', 'rollup_file']
        .filter((schema) => hasSchema(db, schema))
        .flatMap((schema) => db.prepare(`pragma ${schema}.integrity_check`).all())
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
  ...['roll_marks', 'rollup_groups'].map((table) => `select team_no from ${table}`),
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
function* auditedTraces(
  db: DatabaseSync,
  teamNo: number,
  pending: ReadonlyMap<number, CountedTrace>,
): Generator<AuditedTrace> {
  const columns = `${traceColumns}, ${addedColumns}`;
  for (const row of tracesOf(db, teamNo, columns)) {
    yield withStoredSums(auditedFromRow(row), row, pending);
  }
}

/** The values of traces before the first change after the mark. */
function pendingChanges(
  db: DatabaseSync,
  teamNo: number,
  afterNo: number,
  upToSeq: number,
): Map<number, CountedTrace> {
  const read = prepareArrays(
    db,
    `select seq, created_at_us, ${narrowColumns.join(', ')} from trace_changes
     where key between ${rowIdOf} and ${rowIdOf} and seq <= ? and weight < 0 order by key desc`,
  );
  const rows = read.all(teamNo, afterNo + 1, teamNo, seqMax, upToSeq);
  return new Map(rows.map((row) => [row[0] as number, countedOfValues(row)]));
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
    `select coalesce(g.hash, unhex(printf('%016x', r.group_no))), r.latencies, r.set_no, r.grain, r.bucket, ${groupColumns}, ${addedNames.map((name) => `r.${name}`).join(', ')}
     from rollups r left join rollup_groups g on g.no = r.group_no where r.team_no = ? and r.generation = ?`,
  );
  read.setReturnArrays(true);
  read.setReadBigInts(true);
  const sumsAt = 5 + groupLength;
  for (const row of read.iterate(teamNo, generation) as unknown as Iterable<unknown[]>) {
    const [hash, latencies, ...rest] = row;
    const [set = 0, grain = 0, bucket = 0] = rest.slice(0, 3).map(Number);
    const [isError, ...values] = row.slice(5, sumsAt) as [bigint | null, ...(string | null)[]];
    const group =
      isError === null ? null : groupOfColumns(set, [isError === 1n ? 1 : 0, ...values]);
    yield {
      set,
      grain,
      bucket,
      hash: hash as Uint8Array,
      sums: row.slice(sumsAt) as bigint[],
      latencies: latencies as Uint8Array,
      group,
    };
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
