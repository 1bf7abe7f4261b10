import { compile } from './compile.ts';
import { addHistogram, bucketOf, subtractHistogram } from './latency-histogram.ts';
import type { Histogram, Percentiles } from './latency-histogram.ts';
import type { CostParts } from './money.ts';
import { costNames } from './trace-cost.ts';
import { summedNames } from './trace-fields.ts';
import type { NarrowTrace, SummedName } from './trace-fields.ts';

/** The sums of a group of traces. Counts stay far below 2^53; the others may exceed it. */
export interface Measures extends Record<SummedName | 'latency_sum' | 'cost_picos', bigint> {
  calls: number;
  errors: number;
  /** Calls without a cost. */
  uncosted_calls: number;
  /** Calls with a latency. */
  latency_count: number;
  latencies: Histogram;
  /** Instead of the histogram, if nothing will be added any more: a histogram is much longer. */
  percentiles?: Percentiles;
}

export const countNames = ['uncosted_calls', 'latency_count'] as const;
export const sumNames = ['latency_sum', 'cost_picos', ...summedNames] as const;

const plainNames = ['calls', 'errors', ...countNames] as const;

/** Made for every group of every batch, so the names are spelled out (core/compile.ts). */
export const noMeasures = compile<() => Measures>(
  `() => ({ ${[
    ...plainNames.map((name) => `${name}: 0`),
    ...sumNames.map((name) => `${name}: 0n`),
  ].join(', ')}, latencies: new Map() })`,
);

export const addMeasures = compile<(sum: Measures, other: Readonly<Measures>) => void>(
  `(sum, other) => {
    ${plainNames.map((name) => `sum.${name} += other.${name};`).join(' ')}
    ${sumNames.map((name) => `if (other.${name} !== 0n) sum.${name} += other.${name};`).join(' ')}
    addHistogram(sum.latencies, other.latencies);
  }`,
  { addHistogram },
);

export function copyOf(measures: Readonly<Measures>): Measures {
  const copy = noMeasures();
  addMeasures(copy, measures);
  return copy;
}

/** `part` must be included in `sum`. */
export const subtractMeasures = compile<(sum: Measures, part: Readonly<Measures>) => void>(
  `(sum, part) => {
    ${[...plainNames, ...sumNames].map((name) => `sum.${name} -= part.${name};`).join(' ')}
    subtractHistogram(sum.latencies, part.latencies);
  }`,
  { subtractHistogram },
);

/** The fields of a trace that are added up. */
export const addedNames = ['status', 'latency_ms', costNames[0], ...summedNames] as const;
type AddedTrace = Pick<NarrowTrace, (typeof addedNames)[number]>;

type PlainSums = Record<SummedName, number>;

const noSums = compile<() => PlainSums>(
  `() => ({ ${summedNames.map((name) => `${name}: 0`).join(', ')} })`,
);

const addSums = compile<(sums: PlainSums, trace: AddedTrace) => void>(
  `(sums, trace) => { ${summedNames
    .map((name) => `if (trace.${name} !== null) sums.${name} += trace.${name};`)
    .join(' ')} }`,
);

const carrySums = compile<(sums: PlainSums, measures: Measures) => void>(
  `(sums, measures) => { ${summedNames
    .map(
      (name) => `if (sums.${name}) { measures.${name} += BigInt(sums.${name}); sums.${name} = 0; }`,
    )
    .join(' ')} }`,
);

/** Adds up traces. Plain numbers are several times as fast as BigInt; they are carried over before they can exceed 2^53. */
export class MeasuresBatch {
  readonly #measures = noMeasures();
  readonly #sums = noSums();
  #latencySum = 0;
  #costMicros = 0;
  #costPicos = 0;
  #calls = 0;

  add(trace: AddedTrace, cost: CostParts | null): void {
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
    addSums(this.#sums, trace);
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
    if (this.#calls === 0) return;
    const measures = this.#measures;
    measures.latency_sum += BigInt(this.#latencySum);
    measures.cost_picos += BigInt(this.#costMicros) * 1_000_000n + BigInt(this.#costPicos);
    carrySums(this.#sums, measures);
    this.#latencySum = 0;
    this.#costMicros = 0;
    this.#costPicos = 0;
    this.#calls = 0;
  }
}

/** Fewer than 2^53 ÷ 2^31 values below 2^31. A cost is up to 10^12 micro-dollars, so this many also stay below 2^53. */
const carryCalls = 8_192;

/** The bin of the latency histogram; null without a latency. */
export function latencyBinOf({
  latency_ms: latency,
}: Pick<NarrowTrace, 'latency_ms'>): number | null {
  return latency === null ? null : bucketOf(latency);
}
