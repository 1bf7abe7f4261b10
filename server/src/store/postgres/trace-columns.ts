import type { CountedTrace } from '../../core/rollup.ts';
import type { TraceStamp } from '../../core/trace.ts';
import type { PackedPayloads } from '../payload.ts';
import { arrayOfPlain, arrayOfText } from './array-literal.ts';
import type { Values } from './connection.ts';

/** The traces of one batch as columns, which is how `unnest` takes them. */
export class TraceColumns {
  readonly #rows: TraceRow[] = [];
  readonly #bytes: Uint8Array[] = [];
  #bytesBefore = 0;

  get firstId(): string | null {
    return this.#rows[0]?.stamp.id ?? null;
  }

  add(seq: number, stamp: TraceStamp, trace: CountedTrace, payloads: PackedPayloads): void {
    this.#rows.push({
      seq,
      stamp,
      trace,
      zstdMask: payloads.zstdMask,
      error: this.#place(payloads.errorMessage),
      input: this.#place(payloads.input),
      output: this.#place(payloads.output),
    });
  }

  /** The parameters of `insertTraces` after the team. */
  values(): Values {
    const rows = this.#rows;
    return [
      Buffer.concat(this.#bytes),
      arrayOfPlain(rows.map(({ seq }) => seq)),
      arrayOfPlain(rows.map(({ stamp }) => stamp.id)),
      arrayOfPlain(rows.map(({ stamp }) => stamp.createdAtUs)),
      arrayOfText(rows.map(({ trace }) => trace.model)),
      arrayOfPlain(rows.map(({ trace }) => trace.status === 'error')),
      arrayOfPlain(rows.map(({ trace }) => trace.promptTokens)),
      arrayOfPlain(rows.map(({ trace }) => trace.completionTokens)),
      arrayOfPlain(rows.map(({ trace }) => trace.latencyMs)),
      arrayOfPlain(rows.map(({ trace }) => trace.costUsd)),
      arrayOfText(rows.map(({ trace }) => trace.featureName)),
      arrayOfText(rows.map(({ trace }) => trace.userIdentifier)),
      arrayOfPlain(rows.map(({ zstdMask }) => zstdMask)),
      ...placeColumns(rows.map(({ error }) => error)),
      ...placeColumns(rows.map(({ input }) => input)),
      ...placeColumns(rows.map(({ output }) => output)),
    ];
  }

  #place(bytes: Uint8Array | null): Place | null {
    if (bytes === null) return null;
    this.#bytes.push(bytes);
    const at = this.#bytesBefore + 1;
    this.#bytesBefore += bytes.length;
    return { at, length: bytes.length };
  }
}

interface TraceRow {
  seq: number;
  stamp: TraceStamp;
  trace: CountedTrace;
  zstdMask: number;
  error: Place | null;
  input: Place | null;
  output: Place | null;
}

/** Where bytes begin, counted from one, and how many they are. */
interface Place {
  at: number;
  length: number;
}

function placeColumns(places: readonly (Place | null)[]): [string, string] {
  return [
    arrayOfPlain(places.map((place) => place?.at ?? null)),
    arrayOfPlain(places.map((place) => place?.length ?? null)),
  ];
}
