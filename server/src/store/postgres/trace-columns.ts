import { compile } from '../../core/compile.ts';
import { columnOf, narrowNames, payloadNames, traceFields } from '../../core/trace-fields.ts';
import type { FieldKind, NarrowTrace, PayloadName } from '../../core/trace-fields.ts';
import { checksumOf, hasPayloads } from '../payload.ts';
import type { PackedPayloads } from '../payload.ts';
import type { Assigned } from '../sequencer.ts';
import { narrowSources } from '../trace-rows.ts';
import type { ColumnValue } from '../trace-rows.ts';
import { arrayOfPlain, arrayOfText } from './array-literal.ts';
import type { BatchRows } from './batch-rows.ts';
import type { ColumnsInsert, SentColumn } from './columns-insert.ts';
import type { Values } from './connection.ts';

/** How each kind of narrow field is sent as a column of `unnest`. */
const arrayTypes: Record<Exclude<FieldKind, 'text' | 'metadata'>, string> = {
  label: 'text[]',
  source: 'text[]',
  count: 'integer[]',
  dollars: 'double precision[]',
  status: 'boolean[]',
  time: 'bigint[]',
};

const narrow = narrowNames.map((name, i) => {
  const valueOf = compile<(trace: NarrowTrace) => ColumnValue>(`(trace) => ${narrowSources[i]}`);
  const type = arrayTypes[traceFields[name].kind as keyof typeof arrayTypes];
  return { column: columnOf(name), type, isText: type === 'text[]', valueOf };
});

/** In the order of `TraceColumns.traceValues()`. */
const traceColumns: readonly SentColumn[] = [
  ['seq', 'bigint[]'],
  ['id', 'uuid[]'],
  ['created_at_us', 'bigint[]'],
  ...narrow.map(({ column, type }): SentColumn => [column, type]),
];

/** In the order of `TraceColumns.payloadValues()` after the bytes. */
const payloadColumns: readonly SentColumn[] = [
  ['seq', 'bigint[]'],
  ['zstd_mask', 'smallint[]'],
  ['checksum', 'bigint[]'],
  ...payloadNames.flatMap((name): SentColumn[] => [
    [`${name}_at`, 'integer[]'],
    [`${name}_length`, 'integer[]'],
  ]),
];

export const tracesInsert: ColumnsInsert = {
  table: 'traces',
  columns: namesOf(traceColumns),
  sent: traceColumns,
  firstArray: 2,
  values: (of) => namesOf(traceColumns).map(of),
};

/** The bytes of all payloads are one parameter, and each row has its ranges in it: an array of bytea would be sent as text, twice as long. */
export const payloadsInsert: ColumnsInsert = {
  table: 'trace_payloads',
  columns: ['seq', 'zstd_mask', 'checksum', ...payloadNames],
  sent: payloadColumns,
  firstArray: 3,
  values: (of) => [
    ...['seq', 'zstd_mask', 'checksum'].map(of),
    ...payloadNames.map(
      (name) => `substring($2::bytea from ${of(`${name}_at`)} for ${of(`${name}_length`)})`,
    ),
  ],
};

function namesOf(columns: readonly SentColumn[]): string[] {
  return columns.map(([name]) => name);
}

/** `unnest` fills up shorter arrays with null, and most optional fields are not set in any trace of a batch. */
const noValues = '{}';

/** The traces of one batch as columns, as `unnest` needs them. The parameter with their team comes before these. */
export class TraceColumns implements BatchRows {
  readonly #rows: TraceRow[] = [];
  readonly #payloads: PayloadRow[] = [];
  readonly #bytes: Uint8Array[] = [];
  #bytesBefore = 0;

  get first(): BatchRows['first'] {
    const [row] = this.#rows;
    return row ? { teamId: row.teamId, id: row.assigned.id } : null;
  }

  add(teamId: string, assigned: Assigned, trace: NarrowTrace, payloads: PackedPayloads): void {
    this.#rows.push({ teamId, assigned, trace });
    if (!hasPayloads(payloads)) return;
    const ranges = payloadNames.map((name) => this.#append(payloads, name));
    // Traces of schema 3 have no checksum yet.
    const { zstdMask, checksum } = payloads;
    this.#payloads.push({
      seq: assigned.seq,
      zstdMask,
      checksum: checksum ?? checksumOf(payloads),
      ranges,
    });
  }

  traceValues(): Values {
    const rows = this.#rows;
    return [
      arrayOfPlain(rows.map(({ assigned }) => assigned.seq)),
      arrayOfPlain(rows.map(({ assigned }) => assigned.id)),
      arrayOfPlain(rows.map(({ assigned }) => assigned.createdAtUs)),
      ...narrow.map(({ isText, valueOf }) => {
        const values = rows.map(({ trace }) => valueOf(trace));
        if (values.every((value) => value === null)) return noValues;
        return isText ? arrayOfText(values as (string | null)[]) : arrayOfPlain(values);
      }),
    ];
  }

  get traceCount(): number {
    return this.#rows.length;
  }

  get payloadCount(): number {
    return this.#payloads.length;
  }

  payloadValues(): Values {
    const rows = this.#payloads;
    return [
      Buffer.concat(this.#bytes),
      arrayOfPlain(rows.map(({ seq }) => seq)),
      arrayOfPlain(rows.map(({ zstdMask }) => zstdMask)),
      arrayOfPlain(rows.map(({ checksum }) => checksum)),
      ...payloadNames.flatMap((_, i) => [
        arrayOfPlain(rows.map(({ ranges }) => ranges[i]?.at ?? null)),
        arrayOfPlain(rows.map(({ ranges }) => ranges[i]?.length ?? null)),
      ]),
    ];
  }

  #append(payloads: PackedPayloads, name: PayloadName): ByteRange | null {
    const bytes = payloads[name];
    if (bytes === null) return null;
    this.#bytes.push(bytes);
    const at = this.#bytesBefore + 1;
    this.#bytesBefore += bytes.length;
    return { at, length: bytes.length };
  }
}

interface TraceRow {
  teamId: string;
  assigned: Assigned;
  trace: NarrowTrace;
}

interface PayloadRow {
  seq: number;
  zstdMask: number;
  checksum: number;
  ranges: readonly (ByteRange | null)[];
}

/** The position of the first byte, starting at one, and the number of bytes. */
interface ByteRange {
  at: number;
  length: number;
}
