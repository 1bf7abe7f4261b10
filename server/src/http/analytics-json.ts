import { averageLatency, successRate, totalCost } from '../core/analytics.ts';
import type { DayMeasures } from '../core/analytics.ts';
import { formatDay, formatDayLabel } from '../core/clock.ts';
import type { Calendar } from '../core/calendar.ts';
import type { Measures } from '../core/measures.ts';
import type { Tally } from '../core/query.ts';
import { recordNames, recordText } from '../core/record-fields.ts';
import type { LabelName } from '../core/trace-fields.ts';
import type { Answered } from './report.ts';

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

/** The reply of `/analytics/query`. */
export function reportJson({ report, groupBy, range, calendar }: Answered): string {
  const { rows, other, totals } = report;
  const starts = new Map<number, string>();
  const startOf = (us: number): string => {
    let text = starts.get(us);
    if (text === undefined) starts.set(us, (text = `"${formatLocal(us, calendar)}"`));
    return text;
  };
  const rowJson = ({ group, startUs, measures }: Tally): string => {
    const start = startUs === null ? [] : [`"start":${startOf(startUs)}`];
    const values = group.map((value, i) => `"${groupBy[i]}":${JSON.stringify(value)}`);
    return `{${[...start, ...values, recordJson(measures)].join(',')}}`;
  };
  const bound = (us: number | null = null): string => (us === null ? 'null' : startOf(us));
  return (
    `{"from":${bound(range?.fromUs)},"to":${bound(range?.toUs)}` +
    `,"time_zone":${JSON.stringify(calendar.timeZone)},"rows":[${rows.map(rowJson).join(',')}]` +
    `,"other":[${other.map(rowJson).join(',')}],"totals":{${recordJson(totals)}}}`
  );
}

function recordJson(measures: Measures): string {
  return recordNames.map((name) => `"${name}":${recordText(name, measures)}`).join(',');
}

/** `2026-11-14T00:00:00+01:00` */
export function formatLocal(us: number, { timeZone }: Calendar): string {
  return Temporal.Instant.fromEpochMilliseconds(us / 1000)
    .toZonedDateTimeISO(timeZone)
    .toString({ timeZoneName: 'never', smallestUnit: 'second' });
}
