import type { CountedTrace } from '../../core/rollup.ts';
import type { PackedPayloads } from '../payload.ts';
import type { Values } from './connection.ts';

/** The traces of one batch as columns, which is how `unnest` takes them. */
export class TraceColumns {
  readonly #bytes: Uint8Array[] = [];
  #bytesBefore = 0;
  readonly #columns: unknown[][] = Array.from({ length: columnCount }, () => []);

  get firstId(): string | null {
    return (this.#columns[1]?.[0] ?? null) as string | null;
  }

  add(
    seq: number,
    stamp: { id: string; createdAtUs: number },
    trace: CountedTrace,
    payloads: PackedPayloads,
  ): void {
    const values = [
      seq,
      stamp.id,
      stamp.createdAtUs,
      trace.model,
      trace.status === 'error',
      trace.promptTokens,
      trace.completionTokens,
      trace.latencyMs,
      trace.costUsd,
      trace.featureName,
      trace.userIdentifier,
      payloads.zstdMask,
      ...this.#place(payloads.errorMessage),
      ...this.#place(payloads.input),
      ...this.#place(payloads.output),
    ];
    for (const [i, value] of values.entries()) this.#columns[i]?.push(value);
  }

  /** The parameters of `insertTraces` after the team. */
  values(): Values {
    return [Buffer.concat(this.#bytes), ...this.#columns];
  }

  /** Where the bytes begin, counted from one, and how many they are. */
  #place(bytes: Uint8Array | null): [at: number | null, length: number | null] {
    if (bytes === null) return [null, null];
    this.#bytes.push(bytes);
    this.#bytesBefore += bytes.length;
    return [this.#bytesBefore - bytes.length + 1, bytes.length];
  }
}

const columnCount = 18;
