import { averageLatency, successRate, totalCost } from '../core/analytics.ts';
import type { DayMeasures } from '../core/analytics.ts';
import { formatDay, formatDayLabel } from '../core/clock.ts';
import type { Measures } from '../core/measures.ts';
import type { Tally } from '../core/query.ts';
import type { LabelName } from '../core/trace-fields.ts';

/** Formats analytics records as JSON by hand: `JSON.stringify` cannot write exactly six decimals, or integers over 2^53. */
export function overviewJson(measures: Measures): string {
  return (
    `{"total_calls":${measures.calls},"avg_latency_ms":${averageLatency(measures)}` +
    `,"total_cost_usd":${totalCost(measures)},"success_rate":${successRate(measures)}` +
    `,"error_count":${measures.errors}}`
  );
}

export function groupJson(label: LabelName, { group, measures }: Tally): string {
  return (
    `{"${label}":${JSON.stringify(group[0])},"call_count":${measures.calls}` +
    `,"avg_latency_ms":${averageLatency(measures)},"total_cost_usd":${totalCost(measures)}` +
    `,"success_rate":${successRate(measures)}}`
  );
}

export function dayJson({ day, measures }: DayMeasures): string {
  return (
    `{"date":"${formatDay(day)}","label":"${formatDayLabel(day)}","call_count":${measures.calls}` +
    `,"total_cost_usd":${totalCost(measures)},"avg_latency_ms":${averageLatency(measures)}` +
    `,"error_count":${measures.errors}}`
  );
}
