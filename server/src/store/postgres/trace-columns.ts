import type { TraceDraft } from '../../core/trace.ts';
import { encodePayload, zstdBits } from '../payload.ts';
import type { Values } from './connection.ts';

/** The payloads of a draft as they are stored. Packed before the transaction, so that no lock is held meanwhile. */
export interface PackedPayloads {
  zstdMask: number;
  errorMessage: Uint8Array | null;
  input: Uint8Array | null;
  output: Uint8Array | null;
}

export function packPayloads({ errorMessage, input, output }: TraceDraft): PackedPayloads {
  const packed = {
    errorMessage: errorMessage === null ? null : encodePayload(errorMessage),
    input: input === null ? null : encodePayload(input),
    output: output === null ? null : encodePayload(output),
  };
  return {
    zstdMask:
      (packed.input?.isZstd ? zstdBits.input : 0) |
      (packed.output?.isZstd ? zstdBits.output : 0) |
      (packed.errorMessage?.isZstd ? zstdBits.errorMessage : 0),
    errorMessage: packed.errorMessage?.bytes ?? null,
    input: packed.input?.bytes ?? null,
    output: packed.output?.bytes ?? null,
  };
}

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
    draft: TraceDraft,
    payloads: PackedPayloads,
  ): void {
    const values = [
      seq,
      stamp.id,
      stamp.createdAtUs,
      draft.model,
      draft.status === 'error',
      draft.promptTokens,
      draft.completionTokens,
      draft.latencyMs,
      draft.costUsd,
      draft.featureName,
      draft.userIdentifier,
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
