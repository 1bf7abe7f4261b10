import { compile } from '../../core/compile.ts';
import { columnOf, narrowNames, payloadNames, traceFields } from '../../core/trace-fields.ts';
import type { FieldKind, NarrowTrace, PayloadName } from '../../core/trace-fields.ts';
import type { PackedPayloads } from '../payload.ts';
import type { Assigned } from '../sequencer.ts';
import { narrowSources } from '../trace-rows.ts';
import type { ColumnValue } from '../trace-rows.ts';
import { arrayOfPlain, arrayOfText } from './array-literal.ts';
import type { Values } from './connection.ts';

/** How each kind of field is sent as a column of `unnest`. */
const arrayTypes: Record<Exclude<FieldKind, 'text'>, string> = {
  label: 'text[]',
  count: 'integer[]',
  dollars: 'double precision[]',
  status: 'boolean[]',
};

const narrow = narrowNames.map((name, i) => {
  const valueOf = compile<(trace: NarrowTrace) => ColumnValue>(`(trace) => ${narrowSources[i]}`);
  const type = arrayTypes[traceFields[name].kind as keyof typeof arrayTypes];
  return { column: columnOf(name), type, isText: type === 'text[]', valueOf };
});

/** The columns that `unnest` returns: name and type, in the order of `TraceColumns.values()` after the bytes. */
const sentColumns: readonly (readonly [name: string, type: string])[] = [
  ['seq', 'bigint[]'],
  ['id', 'uuid[]'],
  ['created_at_us', 'bigint[]'],
  ...narrow.map(({ column, type }) => [column, type] as const),
  ['zstd_mask', 'smallint[]'],
  ...payloadNames.flatMap((name) => [
    [`${name}_at`, 'integer[]'] as const,
    [`${name}_length`, 'integer[]'] as const,
  ]),
];

/** The parts of `insertTraces`: the bytes are its second parameter, the columns for `unnest` follow. */
const plain = ['seq', 'id', 'created_at_us', ...narrow.map(({ column }) => column), 'zstd_mask'];
export const tracesInsert = {
  columns: [...plain, ...payloadNames].join(', '),
  values: [
    ...plain.map((column) => `u.${column}`),
    ...payloadNames.map((name) => `substring($2::bytea from u.${name}_at for u.${name}_length)`),
  ].join(', '),
  arrays: sentColumns.map(([, type], i) => `$${i + 3}::${type}`).join(', '),
  names: sentColumns.map(([name]) => name).join(', '),
};

/** The traces of one batch as columns, as `unnest` needs them. */
export class TraceColumns {
  readonly #rows: TraceRow[] = [];
  readonly #bytes: Uint8Array[] = [];
  #bytesBefore = 0;

  get firstId(): string | null {
    return this.#rows[0]?.assigned.id ?? null;
  }

  add(assigned: Assigned, trace: NarrowTrace, payloads: PackedPayloads): void {
    const ranges = payloadNames.map((name) => this.#append(payloads, name));
    this.#rows.push({ assigned, trace, zstdMask: payloads.zstdMask, ranges });
  }

  /** The parameters of `insertTraces` after the team. */
  values(): Values {
    const rows = this.#rows;
    return [
      Buffer.concat(this.#bytes),
      arrayOfPlain(rows.map(({ assigned }) => assigned.seq)),
      arrayOfPlain(rows.map(({ assigned }) => assigned.id)),
      arrayOfPlain(rows.map(({ assigned }) => assigned.createdAtUs)),
      ...narrow.map(({ isText, valueOf }) => {
        const values = rows.map(({ trace }) => valueOf(trace));
        return isText ? arrayOfText(values as (string | null)[]) : arrayOfPlain(values);
      }),
      arrayOfPlain(rows.map(({ zstdMask }) => zstdMask)),
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
  assigned: Assigned;
  trace: NarrowTrace;
  zstdMask: number;
  ranges: readonly (ByteRange | null)[];
}

/** The position of the first byte, starting at one, and the number of bytes. */
interface ByteRange {
  at: number;
  length: number;
}
