import { compile } from '../core/compile.ts';
import type { CountedTrace } from '../core/rollup.ts';
import { columnOf, narrowNames, payloadNames, traceFields } from '../core/trace-fields.ts';
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

/** What follows from the other columns, in the form in which SQL adds it up. */
export const addedColumns = 'cost_micros, cost_picos, latency_bin';

/** The columns of a row of `traces`. */
export const shortColumns = ['id', 'created_at_us', ...narrowColumns].join(', ');

/** The columns of a row of `trace_payloads`, in which payloads can be checked. */
export const payloadColumns = ['zstd_mask', 'checksum', ...payloadNames].join(', ');

/** The columns of both tables. */
export const traceColumns = `${shortColumns}, ${payloadColumns}`;

/** The value of each column of a trace, as source code. A status is stored as a flag, everything else as it is. */
export const narrowSources: readonly string[] = narrowNames.map((name) =>
  name === 'status' ? `(trace.status === 'error' ? 1 : 0)` : `trace.${name}`,
);

/** The value of each field from its column, as source code. PostgreSQL returns large integers as text. */
export function narrowFrom(sourceOf: (column: string) => string): string {
  const values = narrowNames.map((name) => {
    const source = sourceOf(columnOf(name));
    if (name === 'status') return `status: ${source} ? 'error' : 'success'`;
    if (traceFields[name].kind === 'time') return `${name}: ${source} && Number(${source})`;
    return `${name}: ${source}`;
  });
  return values.join(', ');
}

const narrowOf = compile<(row: Row) => NarrowTrace>(
  `(row) => ({ ${narrowFrom((column) => `row.${column}`)} })`,
);

/** A trace as far as it is added up. */
export const countedFromRow = compile<(row: Row) => CountedTrace>(
  `(row) => ({ createdAtUs: Number(row.created_at_us), ${narrowFrom((column) => `row.${column}`)} })`,
);

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
  const { metadata, damaged = [] } = unpackPayloads(payloadsOfRow(row));
  return { ...numberedFromRow(row), metadata, damaged };
}

export function damageFromRow(row: Row): Pick<AuditedTrace, 'seq' | 'id' | 'damaged'> {
  return {
    seq: Number(row['seq']),
    id: stampOf(row).id,
    damaged: damagedPayloads(payloadsOfRow(row)),
  };
}
