import { columnOf, narrowNames, payloadNames } from '../core/trace-fields.ts';
import type { NarrowTrace } from '../core/trace-fields.ts';
import type { Trace } from '../core/trace.ts';
import { uuidText } from '../core/uuid.ts';
import type { AuditedTrace, NumberedTrace } from './audit.ts';
import { damagedPayloads, payloadsOfRow, unpackPayloads } from './payload.ts';
import type { PackedTrace } from './transfer.ts';

/** Converts traces to rows and back, derived from `core/trace-fields.ts` for every store. */
type Row = Readonly<Record<string, unknown>>;

/** The columns of the narrow fields. */
export const narrowColumns: readonly string[] = narrowNames.map(columnOf);

/** The columns of a trace without its payloads. */
export const shortColumns = ['id', 'created_at_us', ...narrowColumns, 'zstd_mask'].join(', ');

export const traceColumns = [shortColumns, ...payloadNames].join(', ');

export type ColumnValue = string | number | null;

/** The value of each column of a trace, as source code. A status is stored as a flag, everything else as it is. */
export const narrowSources: readonly string[] = narrowNames.map((name) =>
  name === 'status' ? `(trace.status === 'error' ? 1 : 0)` : `trace.${name}`,
);

const narrowFields = narrowNames.map((name) => ({ name, column: columnOf(name) }));

function narrowOf(row: Row): NarrowTrace {
  const trace: Record<string, unknown> = {};
  for (const { name, column } of narrowFields) {
    const value = row[column];
    trace[name] = name === 'status' ? (value ? 'error' : 'success') : value;
  }
  return trace as NarrowTrace;
}

/** PostgreSQL returns ids and large integers as text, SQLite as bytes and numbers. The integers stay far below 2^53. */
function stampOf(row: Row) {
  const id = row['id'] as string | Uint8Array;
  return {
    id: typeof id === 'string' ? id : uuidText(id),
    createdAtUs: Number(row['created_at_us']),
  };
}

export function traceFromRow(row: Row, teamId: string, previewChars: number | null = null): Trace {
  const payloads = unpackPayloads(payloadsOfRow(row), previewChars);
  return { ...stampOf(row), teamId, ...narrowOf(row), ...payloads };
}

function numberedFromRow(row: Row): NumberedTrace {
  return { seq: Number(row['seq']), ...stampOf(row), ...narrowOf(row) };
}

export function packedFromRow(row: Row): PackedTrace {
  return { ...numberedFromRow(row), ...payloadsOfRow(row) };
}

export function auditedFromRow(row: Row): AuditedTrace {
  return { ...numberedFromRow(row), damaged: damagedPayloads(payloadsOfRow(row)) };
}

export function damageFromRow(row: Row): Pick<AuditedTrace, 'seq' | 'id' | 'damaged'> {
  return {
    seq: Number(row['seq']),
    id: stampOf(row).id,
    damaged: damagedPayloads(payloadsOfRow(row)),
  };
}
