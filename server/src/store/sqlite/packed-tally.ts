import { addMeasures, decodeMeasures, noMeasures } from '../../core/measures.ts';
import type { Tally } from '../../core/query.ts';

/** A tally whose sums are still encoded, as they are sent between threads: copying maps and BigInts would cost more. */
export interface PackedTally {
  group: Tally['group'];
  /** One or two sums, one after the other: of calls that succeeded and of calls that failed. */
  parts: Uint8Array;
}

/** Encoded sums, with what is needed to decode them. */
export function packPart(calls: number, isError: number, sums: Uint8Array): Buffer {
  const part = Buffer.allocUnsafe(headBytes + sums.length);
  part.writeDoubleLE(calls, 0);
  part.writeUInt8(isError, 8);
  part.writeUInt32LE(sums.length, 9);
  part.set(sums, headBytes);
  return part;
}

/** Calls, whether they failed, and the length of the sums that follow. */
const headBytes = 13;

export function unpackTally({ group, parts }: PackedTally): Tally {
  const bytes = Buffer.from(parts.buffer, parts.byteOffset, parts.byteLength);
  const measures = noMeasures();
  for (let at = 0; at < bytes.length;) {
    const begin = at + headBytes;
    const end = begin + bytes.readUInt32LE(at + 9);
    const isError = bytes.readUInt8(at + 8) === 1;
    const part = decodeMeasures(bytes.subarray(begin, end), bytes.readDoubleLE(at), isError);
    addMeasures(measures, part);
    at = end;
  }
  return { group, startUs: null, measures };
}
