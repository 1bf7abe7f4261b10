import { encodedNames as names, sumsVersion, unknownVersion } from './encoded-measures.ts';
import type { EncodedMeasures } from './encoded-measures.ts';
import { LatencyCounts } from './latency-counts.ts';
import { percents } from './latency-histogram.ts';
import { countNames, noMeasures, sumNames } from './measures.ts';
import type { Measures } from './measures.ts';
import { VarintWriter } from './varint.ts';

/** Stored sums. `latencies` is null if they were not read. */
export interface CountedMeasures {
  calls: number;
  isError: boolean;
  sums: Uint8Array;
  latencies: Uint8Array | null;
}

/**
 * Adds up stored measures without an object or a BigInt for each of them. Each sum is two numbers: the lower 49 bits, or a little
 * more until they are carried over, and the bits above. Both are exact: no sum exceeds 2^102, since there are at most 2^40 traces and no
 * cost exceeds 2^60 pico-dollars.
 */
export class MeasuresSum {
  readonly #hasLatencies: boolean;
  #calls = 0;
  #errors = 0;
  readonly #low = new Float64Array(names.length);
  /** Only if it is needed. */
  #high: Float64Array | null = null;
  #latencies: LatencyCounts | null = null;

  /** With or without a latency histogram. */
  constructor(hasLatencies = true) {
    this.#hasLatencies = hasLatencies;
  }

  get calls(): number {
    return this.#calls;
  }

  addEncoded({ calls, isError, sums, latencies }: CountedMeasures): void {
    this.#calls += calls;
    if (isError) this.#errors += calls;
    this.#addSums(sums, 0);
    if (this.#hasLatencies && latencies !== null && latencies.length > 0) {
      (this.#latencies ??= new LatencyCounts()).addEncoded(latencies);
    }
  }

  /** Stored sums and latencies that are part of larger bytes. */
  addPacked(
    calls: number,
    isError: boolean,
    bytes: Uint8Array,
    sumsAt: number,
    latenciesAt: number,
    end: number,
  ): void {
    this.#calls += calls;
    if (isError) this.#errors += calls;
    if (this.#addSums(bytes, sumsAt) > latenciesAt) cutOff();
    if (this.#hasLatencies && latenciesAt < end) {
      (this.#latencies ??= new LatencyCounts()).addEncoded(bytes, latenciesAt, end);
    }
  }

  /** The same as of its measures. */
  percentile(percent: number): number | null {
    return this.#latencies?.percentile(percent) ?? null;
  }

  /** Takes a part of this sum away from it. */
  subtract(part: MeasuresSum): void {
    this.#calls -= part.#calls;
    this.#errors -= part.#errors;
    for (let i = 0; i < names.length; i++) {
      const low = (this.#low[i] ?? 0) - (part.#low[i] ?? 0);
      // What is missing below comes from the bits above.
      const borrowed = low < 0 ? Math.ceil(-low / highUnit) : 0;
      this.#low[i] = low + borrowed * highUnit;
      const high = (part.#high?.[i] ?? 0) + borrowed;
      if (high > 0) this.#addHigh(i, -high);
    }
    this.subtractLatencies(part);
  }

  /** Takes the latencies of a part of this sum away from it. */
  subtractLatencies(part: MeasuresSum): void {
    if (part.#latencies) this.#latencies?.subtract(part.#latencies);
    if (this.#latencies?.count === 0) this.#latencies = null;
  }

  /** Without its histogram, but with percentiles, unless it has none. */
  shownMeasures(): Measures {
    const measures = this.#measuresAlone();
    const latencies = this.#latencies;
    if (latencies) measures.percentiles = percents.map((percent) => latencies.percentile(percent));
    return measures;
  }

  /** Another sum, with its latencies. */
  addWhole(other: MeasuresSum): void {
    this.addSum(other);
    if (other.#latencies) (this.#latencies ??= new LatencyCounts()).addCounts(other.#latencies);
  }

  /** Another sum, without its latencies. */
  addSum(other: MeasuresSum): void {
    this.#calls += other.#calls;
    this.#errors += other.#errors;
    const low = this.#low;
    const added = other.#low;
    for (let i = 0; i < names.length; i++) {
      const total = (low[i] ?? 0) + (added[i] ?? 0);
      low[i] = total;
      if (total >= carryFrom) this.#carry(i);
    }
    for (const [i, high] of other.#high?.entries() ?? []) if (high > 0) this.#addHigh(i, high);
  }

  add(measures: Measures): void {
    this.#calls += measures.calls;
    this.#errors += measures.errors;
    for (const [i, name] of names.entries()) this.#addBig(i, BigInt(measures[name]));
    if (!this.#hasLatencies || measures.latencies.size === 0) return;
    const latencies = (this.#latencies ??= new LatencyCounts());
    for (const [bucket, count] of measures.latencies) latencies.add(bucket, count);
  }

  measures(): Measures {
    const measures = this.#measuresAlone();
    this.#latencies?.addTo(measures.latencies);
    return measures;
  }

  /** As it is stored. */
  encoded(): EncodedMeasures {
    const writer = new VarintWriter();
    writer.writeNumber(sumsVersion);
    for (let i = 0; i < names.length; i++) {
      if (this.#high) writer.writeBigInt(this.#valueAt(i));
      else writer.writeNumber(this.#low[i] ?? 0);
    }
    return { sums: writer.bytes(), latencies: this.#latencies?.encoded() ?? new Uint8Array() };
  }

  #measuresAlone(): Measures {
    const measures = noMeasures();
    measures.calls = this.#calls;
    measures.errors = this.#errors;
    for (const [i, name] of countNames.entries()) measures[name] = Number(this.#valueAt(i));
    for (const [i, name] of sumNames.entries()) {
      measures[name] = this.#valueAt(countNames.length + i);
    }
    return measures;
  }

  /** Returns where they end. */
  #addSums(bytes: Uint8Array, start: number): number {
    if (bytes[start] !== sumsVersion) throw new Error(unknownVersion);
    const low = this.#low;
    let at = start + 1;
    for (let i = 0; i < names.length; i++) {
      let byte = bytes[at++] ?? 0;
      // Most of the tokens that few calls have are zero.
      if (byte === 0) continue;
      let value = byte & 0x7f;
      for (let shift = 7; byte >= 0x80 && shift < 28; shift += 7) {
        byte = bytes[at++] ?? 0;
        value |= (byte & 0x7f) << shift;
      }
      for (let unit = 2 ** 28; byte >= 0x80 && unit < highUnit; unit *= 0x80) {
        byte = bytes[at++] ?? 0;
        value += (byte & 0x7f) * unit;
      }
      if (byte >= 0x80) at = this.#addHighBytes(i, bytes, at);
      const total = (low[i] ?? 0) + value;
      low[i] = total;
      if (total >= carryFrom) this.#carry(i);
    }
    if (at > bytes.length) cutOff();
    return at;
  }

  #addHighBytes(i: number, bytes: Uint8Array, start: number): number {
    let at = start;
    let high = 0;
    for (let byte = 0x80, unit = 1; byte >= 0x80; unit *= 0x80) {
      byte = bytes[at++] ?? cutOff();
      high += (byte & 0x7f) * unit;
    }
    this.#addHigh(i, high);
    return at;
  }

  #addBig(i: number, value: bigint): void {
    const isSmall = value < highUnitBig;
    this.#low[i] = (this.#low[i] ?? 0) + Number(isSmall ? value : value % highUnitBig);
    if (!isSmall) this.#addHigh(i, Number(value / highUnitBig));
    if ((this.#low[i] ?? 0) >= carryFrom) this.#carry(i);
  }

  #carry(i: number): void {
    const low = this.#low[i] ?? 0;
    this.#low[i] = low % highUnit;
    this.#addHigh(i, Math.floor(low / highUnit));
  }

  #addHigh(i: number, value: number): void {
    const high = (this.#high ??= new Float64Array(names.length));
    high[i] = (high[i] ?? 0) + value;
    if (!Number.isSafeInteger(high[i])) throw new RangeError('a sum is too large');
  }

  #valueAt(i: number): bigint {
    return BigInt(this.#low[i] ?? 0) + BigInt(this.#high?.[i] ?? 0) * highUnitBig;
  }
}

const highUnit = 2 ** 49;
const highUnitBig = BigInt(highUnit);
/** Adding another value below 2^49 stays below 2^53. */
const carryFrom = 2 ** 52;

function cutOff(): never {
  throw new RangeError('a stored number is cut off');
}

export function decodeMeasures(encoded: CountedMeasures): Measures {
  const sum = new MeasuresSum();
  sum.addEncoded(encoded);
  return sum.measures();
}
