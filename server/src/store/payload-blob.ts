import { payloadNames } from '../core/trace-fields.ts';
import { packedBytes } from './payload.ts';
import type { PackedPayloads } from './payload.ts';

/** The packed payloads of consecutive traces in one buffer, so that a thread can hand them to another without a copy. */
export interface PayloadBlob {
  bytes: ArrayBuffer;
  /** For each trace the mask, the checksum and the length of each payload; `notSet` in place of what is null. */
  layout: Float64Array<ArrayBuffer>;
}

const notSet = -1;
const numbersPerTrace = 2 + payloadNames.length;

export function blobOf(all: readonly PackedPayloads[]): PayloadBlob {
  const bytes = new Uint8Array(all.reduce((sum, packed) => sum + packedBytes(packed), 0));
  const layout = new Float64Array(all.length * numbersPerTrace);
  let at = 0;
  let next = 0;
  for (const packed of all) {
    layout[next++] = packed.zstdMask;
    layout[next++] = packed.checksum ?? notSet;
    for (const name of payloadNames) {
      const payload = packed[name];
      layout[next++] = payload?.length ?? notSet;
      if (payload === null) continue;
      bytes.set(payload, at);
      at += payload.length;
    }
  }
  return { bytes: bytes.buffer, layout };
}

/** The payloads of each trace, as views of the buffer. */
export function payloadsIn({ bytes, layout }: PayloadBlob): PackedPayloads[] {
  const all: PackedPayloads[] = [];
  let at = 0;
  for (let next = 0; next < layout.length; next += numbersPerTrace) {
    const checksum = layout[next + 1] as number;
    const packed: Record<string, unknown> = {
      zstdMask: layout[next],
      checksum: checksum === notSet ? null : checksum,
    };
    for (const [i, name] of payloadNames.entries()) {
      const length = layout[next + 2 + i] as number;
      packed[name] = length === notSet ? null : new Uint8Array(bytes, at, length);
      if (length !== notSet) at += length;
    }
    all.push(packed as PackedPayloads);
  }
  return all;
}

export function blobBytes({ bytes }: PayloadBlob): number {
  return bytes.byteLength;
}

/** The payloads of a write that has them packed, except for drafts that were left out; null if they are not packed. */
export function payloadsOf(
  { payloads }: { payloads?: readonly PayloadBlob[] | null },
  leftOut: readonly number[] = [],
): PackedPayloads[] | null {
  if (!payloads) return null;
  const all = payloads.flatMap(payloadsIn);
  if (leftOut.length === 0) return all;
  const indexes = new Set(leftOut);
  return all.filter((_, i) => !indexes.has(i));
}
