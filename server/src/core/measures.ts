import { compile } from './compile.ts';
import { addHistogram, bucketOf } from './latency-histogram.ts';
import type { Histogram } from './latency-histogram.ts';
import { splitCost } from './money.ts';
import type { CostParts } from './money.ts';
import { summedNames } from './trace-fields.ts';
import type { NarrowTrace, SummedName } from './trace-fields.ts';
import { VarintReader, VarintWriter } from './varint.ts';

/** The sums of a group of traces. Counts stay far below 2^53; the others may exceed it. */
export interface Measures extends Record<SummedName | 'latency_sum' | 'cost_picos', bigint> {
  calls: number;
  errors: number;
  /** Calls without a cost. */
  uncosted_calls: number;
  /** Calls with a latency. */
  latency_count: number;
  latencies: Histogram;
}

const countNames = ['uncosted_calls', 'latency_count'] as const;
const sumNames = ['latency_sum', 'cost_picos', ...summedNames] as const;

/** Spelled out, since an answer or a batch may need many thousands of them. */
export const noMeasures = compile<() => Measures>(
  `() => ({ calls: 0, errors: 0, ${countNames.map((name) => `${name}: 0`).join(', ')}, ${sumNames
    .map((name) => `${name}: 0n`)
    .join(', ')}, latencies: new Map() })`,
);

export function addMeasures(sum: Measures, other: Measures): void {
  sum.calls += other.calls;
  sum.errors += other.errors;
  for (const name of countNames) sum[name] += other[name];
  for (const name of sumNames) sum[name] += other[name];
  addHistogram(sum.latencies, other.latencies);
}

/** The stored form has a version, so that measures can be added later. */
const version = 1;

/**
 * Everything except calls, which are a column of their own by which a store can sort, and errors: the status is part of a stored group,
 * so either all of its calls failed or none.
 */
export function encodeMeasures(measures: Measures): Uint8Array {
  const writer = new VarintWriter();
  writer.write(version);
  for (const name of countNames) writer.write(measures[name]);
  for (const name of sumNames) writer.write(measures[name]);
  let last = 0;
  for (const [bucket, count] of [...measures.latencies].sort(([a], [b]) => a - b)) {
    writer.write(bucket - last);
    writer.write(count);
    last = bucket;
  }
  return writer.bytes();
}

export function decodeMeasures(bytes: Uint8Array, calls: number, isError: boolean): Measures {
  const reader = new VarintReader(bytes);
  if (reader.readNumber() !== version) throw new Error('the stored sums have an unknown version');
  const measures = noMeasures();
  for (const name of countNames) measures[name] = reader.readNumber();
  for (const name of sumNames) measures[name] = reader.readBigInt();
  measures.calls = calls;
  if (isError) measures.errors = calls;
  for (let bucket = 0; !reader.isAtEnd;) {
    bucket += reader.readNumber();
    measures.latencies.set(bucket, reader.readNumber());
  }
  return measures;
}

/** The cost of a trace in the form in which it is added; null if it has none. */
export function costOf({ cost_usd }: NarrowTrace): CostParts | null {
  return cost_usd === null ? null : splitCost(cost_usd);
}

/** Adds up traces. Plain numbers are several times as fast as BigInt; they are carried over before they can exceed 2^53. */
export class MeasuresBatch {
  readonly #measures = noMeasures();
  readonly #sums = Object.fromEntries(summedNames.map((name) => [name, 0])) as Record<
    SummedName,
    number
  >;
  #latencySum = 0;
  #costMicros = 0;
  #costPicos = 0;
  #calls = 0;

  add(trace: NarrowTrace, cost: CostParts | null): void {
    const measures = this.#measures;
    if (this.#calls === carryCalls) this.#carry();
    this.#calls += 1;
    measures.calls += 1;
    if (trace.status === 'error') measures.errors += 1;
    const latency = trace.latency_ms;
    if (latency !== null) {
      this.#latencySum += latency;
      measures.latency_count += 1;
      const bucket = bucketOf(latency);
      measures.latencies.set(bucket, (measures.latencies.get(bucket) ?? 0) + 1);
    }
    for (const name of summedNames) this.#sums[name] += trace[name] ?? 0;
    if (cost === null) {
      measures.uncosted_calls += 1;
    } else {
      this.#costMicros += cost.micros;
      this.#costPicos += cost.picos;
    }
  }

  /** The sums so far. The object is the batch's own and changes when more is added. */
  total(): Measures {
    this.#carry();
    return this.#measures;
  }

  #carry(): void {
    const measures = this.#measures;
    measures.latency_sum += BigInt(this.#latencySum);
    measures.cost_picos += BigInt(this.#costMicros) * 1_000_000n + BigInt(this.#costPicos);
    for (const name of summedNames) {
      measures[name] += BigInt(this.#sums[name]);
      this.#sums[name] = 0;
    }
    this.#latencySum = 0;
    this.#costMicros = 0;
    this.#costPicos = 0;
    this.#calls = 0;
  }
}

/** Fewer than 2^53 ÷ 2^31 values below 2^31. A cost is up to 10^12 micro-dollars, so this many also stay below 2^53. */
const carryCalls = 8_192;
