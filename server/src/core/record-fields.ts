import { averageLatency, successRate } from './analytics.ts';
import { percentile, percents } from './latency-histogram.ts';
import type { Measures } from './measures.ts';
import { formatExactDollars } from './money.ts';
import { summedNames } from './trace-fields.ts';
import type { SummedName } from './trace-fields.ts';

/** A field of the records of `/analytics/query`. Replies, their schema, the order of groups and the command line are derived from it. */
export interface RecordField {
  /** Counts and dollars add up: the parts of a total together are the total. */
  kind: 'count' | 'dollars' | 'rate' | 'latency';
  /** What groups are ordered by. Null if there is no value. */
  valueOf(measures: Measures): number | bigint | null;
}

type PercentileName = `p${(typeof percents)[number]}_latency_ms`;
const percentileNames = percents.map((percent): PercentileName => `p${percent}_latency_ms`);

function mapNames<N extends string>(
  names: readonly N[],
  fieldOf: (name: N, index: number) => RecordField,
): Record<N, RecordField> {
  return Object.fromEntries(names.map((name, i) => [name, fieldOf(name, i)])) as Record<
    N,
    RecordField
  >;
}

export const recordFields = {
  call_count: { kind: 'count', valueOf: ({ calls }) => calls },
  error_count: { kind: 'count', valueOf: ({ errors }) => errors },
  success_rate: { kind: 'rate', valueOf: successRate },
  total_cost_usd: { kind: 'dollars', valueOf: ({ cost_picos }) => cost_picos },
  uncosted_calls: { kind: 'count', valueOf: (measures) => measures.uncosted_calls },
  ...mapNames<SummedName>(summedNames, (name) => ({
    kind: 'count',
    valueOf: (measures) => measures[name],
  })),
  avg_latency_ms: {
    kind: 'latency',
    valueOf: (measures) => (measures.latency_count === 0 ? null : averageLatency(measures)),
  },
  ...mapNames<PercentileName>(percentileNames, (_, i) => ({
    kind: 'latency',
    valueOf: ({ latencies, percentiles }) =>
      percentiles ? (percentiles[i] ?? null) : percentile(latencies, percents[i] ?? 0),
  })),
} satisfies Record<string, RecordField>;

export type RecordName = keyof typeof recordFields;
export const recordNames = Object.keys(recordFields) as readonly RecordName[];

/** Whether its value comes from the latency histogram. */
export function isPercentile(name: RecordName): boolean {
  return percentOf(name) !== null;
}

/** Of a percentile; null of other fields. */
export function percentOf(name: RecordName): number | null {
  return percents[(percentileNames as readonly RecordName[]).indexOf(name)] ?? null;
}

/** As in JSON. */
export function recordText(name: RecordName, measures: Measures): string {
  const { kind, valueOf }: RecordField = recordFields[name];
  const value = valueOf(measures);
  return kind === 'dollars' ? formatExactDollars(value as bigint) : String(value);
}
