import type { ExactNumber } from '../core/analytics.ts';

/** A record of the analytics: flat, with names that need no escape. */
type AnalyticsRecord = Readonly<Record<string, string | number | ExactNumber>>;

/** The record as JSON. `JSON.stringify` takes its slow path where a number must be written exactly as it stands. */
export function recordJson(record: AnalyticsRecord): string {
  let text = '';
  for (const name in record) {
    text += `${text === '' ? '{' : ','}"${name}":${valueJson(record[name])}`;
  }
  return `${text}}`;
}

function valueJson(value: AnalyticsRecord[string] | undefined): string {
  if (typeof value === 'object') return value.rawJSON;
  return typeof value === 'number' ? String(value) : JSON.stringify(value);
}

export function recordsJson(records: readonly AnalyticsRecord[]): string {
  return records.map(recordJson).join(',');
}

export const jsonContentType = 'application/json; charset=utf-8';
