import type { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { packedBytes } from '../payload.ts';
import { packedFromRow, traceColumns } from '../trace-rows.ts';
import type { PackedTrace, Taken, Transfer } from '../transfer.ts';
import { inTransaction } from './connection.ts';
import { readRequests, takeRequests } from './idempotency-table.ts';
import { rowIdOf, seqOfRowId } from './row-id.ts';
import { openTraceTables } from './trace-tables.ts';
import type { TraceTables } from './trace-tables.ts';

/** Statements are prepared when needed, since a server never transfers. */
export function openTransfer(
  db: DatabaseSync,
  holdLock: () => void,
): Omit<Transfer, 'takeTeam' | 'takeKeys'> {
  let opened: TraceTables | null = null;
  const tables = (): TraceTables => (opened ??= openTraceTables(db));
  const teamNo = (teamId: string): number => tables().counter(teamId).teamNo;

  return {
    async claim() {
      try {
        holdLock();
        return null;
      } catch (error) {
        if (error instanceof OperatorError) return 'a server';
        throw error;
      }
    },
    async counter(teamId) {
      const { firstSeq, lastSeq, lastUs } = tables().counter(teamId);
      return { firstSeq, lastSeq, lastUs };
    },
    packedTraces: async (teamId, fromSeq) => readPacked(db, teamNo(teamId), fromSeq),
    storedRequests: async (teamId, nowUs, after = '') =>
      readRequests(db, teamNo(teamId), nowUs, after),
    async takeTraces(teamId, traces) {
      return inTransaction(db, () => takeTraces(tables(), teamId, traces));
    },
    takeRequests: async (teamId, requests) =>
      inTransaction(db, () => takeRequests(db, teamNo(teamId), requests)),
  };
}

function readPacked(db: DatabaseSync, teamNo: number, fromSeq: number): PackedTrace[] {
  const rows = db
    .prepare(
      `select ${seqOfRowId} as seq, ${traceColumns} from traces
       left join trace_payloads using (key) where key between ${rowIdOf} and ${rowIdOf} order by key`,
    )
    .iterate(teamNo, fromSeq, teamNo, fromSeq + limits.moveRowsMax - 1);
  const traces: PackedTrace[] = [];
  let bytes = 0;
  for (const row of rows) {
    const trace = packedFromRow(row);
    traces.push(trace);
    bytes += packedBytes(trace);
    if (bytes >= limits.moveBytesMax) break;
  }
  return traces;
}

function takeTraces(tables: TraceTables, teamId: string, traces: readonly PackedTrace[]): Taken {
  const [first] = traces;
  if (!first) return { kind: 'taken' };
  const rows = tables.openBatch(teamId);
  const { firstSeq, lastSeq } = rows.batch.counter;
  const isEmpty = lastSeq < firstSeq;
  if (!isEmpty && first.seq !== lastSeq + 1) return { kind: 'not-next', lastSeq };
  rows.batch.take(traces);
  tables.finish(rows);
  return { kind: 'taken' };
}
