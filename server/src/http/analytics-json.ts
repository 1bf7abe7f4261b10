import { setImmediate as nextTurn } from 'node:timers/promises';
import { averageLatency, successRate, totalCost } from '../core/analytics.ts';
import type { DayMeasures } from '../core/analytics.ts';
import { formatDay, formatDayLabel } from '../core/clock.ts';
import type { Calendar } from '../core/calendar.ts';
import type { Measures } from '../core/measures.ts';
import type { Tally } from '../core/query.ts';
import { recordJson } from '../core/record-fields.ts';
import type { LabelName } from '../core/trace-fields.ts';
import { limits } from '../limits.ts';
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

/** The reply of `/analytics/query` in pieces, so that ten thousand rows do not keep other requests waiting. */
export interface ReportPieces {
  first: string;
  /** Null if there are few rows. */
  rest: AsyncIterable<string> | null;
  last: string;
}

export function reportPieces({ report, groupBy, range, calendar }: Answered): ReportPieces {
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
  const chunk = (from: number): string =>
    rows
      .slice(from, from + limits.reportChunkRows)
      .map(rowJson)
      .join(',');
  async function* rest(): AsyncGenerator<string> {
    for (let at = limits.reportChunkRows; at < rows.length; at += limits.reportChunkRows) {
      await nextTurn();
      yield `,${chunk(at)}`;
    }
  }
  return {
    first:
      `{"from":${bound(range?.fromUs)},"to":${bound(range?.toUs)}` +
      `,"time_zone":${JSON.stringify(calendar.timeZone)},"rows":[${chunk(0)}`,
    rest: rows.length > limits.reportChunkRows ? rest() : null,
    last: `],"other":[${other.map(rowJson).join(',')}],"totals":{${recordJson(totals)}}}`,
  };
}

/** The same as one text. */
export async function reportJson(answered: Answered): Promise<string> {
  const { first, rest, last } = reportPieces(answered);
  const pieces = [first];
  for await (const piece of rest ?? []) pieces.push(piece);
  return [...pieces, last].join('');
}

/** `2026-11-14T00:00:00+01:00` */
export function formatLocal(us: number, { timeZone }: Calendar): string {
  return Temporal.Instant.fromEpochMilliseconds(us / 1000)
    .toZonedDateTimeISO(timeZone)
    .toString({ timeZoneName: 'never', smallestUnit: 'second' });
}
