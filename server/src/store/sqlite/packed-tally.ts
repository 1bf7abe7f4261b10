import { encodeMeasures } from '../../core/encoded-measures.ts';
import { percentilesOf } from '../../core/latency-histogram.ts';
import type { Percentiles } from '../../core/latency-histogram.ts';
import { noMeasures } from '../../core/measures.ts';
import { MeasuresSum } from '../../core/measures-sum.ts';
import type { CountedMeasures } from '../../core/measures-sum.ts';
import type { Tally } from '../../core/query.ts';

/** A tally whose sums are still encoded, as they are sent between threads: copying maps and BigInts would cost more. */
export interface PackedTally {
  group: Tally['group'];
  startUs: Tally['startUs'];
  /** One or two sums, one after the other: of calls that succeeded and of calls that failed. */
  parts: Uint8Array;
  /** Instead of latencies in the parts. */
  percentiles?: Percentiles | undefined;
}

/**
 * With percentiles instead of its histogram: nothing can be added to it any more. The sums of both statuses are known only together, so
 * they are sent with the calls that succeeded.
 */
export function packTally({ group, startUs, measures }: Tally): PackedTally {
  const { calls, errors, latencies } = measures;
  const succeeded = { calls: calls - errors, isError: false, ...encodeMeasures(measures, []) };
  const failed = { calls: errors, isError: true, ...noSums };
  const parts = Buffer.concat([packPart(succeeded), packPart(failed)]);
  const percentiles = latencies.size > 0 ? percentilesOf(latencies) : measures.percentiles;
  return { group, startUs, parts, percentiles };
}

const noSums = encodeMeasures(noMeasures());

/** Encoded sums, with what is needed to decode them. */
export function packPart({ calls, isError, sums, latencies }: CountedMeasures): Buffer {
  const part = Buffer.allocUnsafe(headBytes + sums.length + (latencies?.length ?? 0));
  part.writeDoubleLE(calls, 0);
  part.writeUInt8(isError ? 1 : 0, 8);
  part.writeUInt32LE(sums.length, 9);
  part.writeUInt32LE(latencies?.length ?? 0, 13);
  part.set(sums, headBytes);
  if (latencies) part.set(latencies, headBytes + sums.length);
  return part;
}

/** Calls, whether they failed, and the lengths of what follows. */
const headBytes = 17;

export function unpackTally({ group, startUs, parts, percentiles }: PackedTally): Tally {
  const bytes = Buffer.from(parts.buffer, parts.byteOffset, parts.byteLength);
  const sum = new MeasuresSum();
  for (let at = 0; at < bytes.length;) {
    const sumsAt = at + headBytes;
    const latenciesAt = sumsAt + bytes.readUInt32LE(at + 9);
    const end = latenciesAt + bytes.readUInt32LE(at + 13);
    sum.addEncoded({
      calls: bytes.readDoubleLE(at),
      isError: bytes.readUInt8(at + 8) === 1,
      sums: bytes.subarray(sumsAt, latenciesAt),
      latencies: bytes.subarray(latenciesAt, end),
    });
    at = end;
  }
  const measures = sum.measures();
  if (percentiles) measures.percentiles = percentiles;
  return { group, startUs, measures };
}
