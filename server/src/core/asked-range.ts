import type { FieldError } from '../errors.ts';
import type { Calendar } from './calendar.ts';
import { calendarOf, nextHour } from './calendar.ts';
import type { TimeRange } from './query.ts';
import { parseTimestamp } from './timestamp.ts';

/** The parameters that choose a range, as they were sent. */
export interface RangeText {
  from?: string | undefined;
  to?: string | undefined;
  last?: string | undefined;
}

/** The range of a question. Without `from` it includes everything before `toUs`. */
export interface AskedRange {
  fromUs: number | null;
  toUs: number;
}

/** Sums are stored by hour, so a question about sums can begin and end at whole hours only. A list of traces can at any time. */
export type RangeUnit = 'hour' | 'instant';

export type RangeAnswer =
  | { kind: 'range'; range: AskedRange | null }
  | { kind: 'invalid'; errors: FieldError[] };

export function hasRange({ from, to, last }: RangeText): boolean {
  return from !== undefined || to !== undefined || last !== undefined;
}

/**
 * `from` and `to` are days of the team, both included, or instants, of which `to` is excluded. Without `to` the range ends with the
 * current day.
 */
export function readRange(
  text: RangeText,
  calendar: Calendar,
  nowUs: number,
  unit: RangeUnit,
): RangeAnswer {
  const { from, to, last } = text;
  if (!hasRange(text)) return { kind: 'range', range: null };
  if (last !== undefined) {
    if (from !== undefined || to !== undefined) {
      return invalid([{ field: 'last', message: 'must not be combined with from or to' }]);
    }
    const range = lastRange(last, calendar, nowUs);
    return range ? { kind: 'range', range } : invalid([{ field: 'last', message: lastRule }]);
  }
  const fromUs = from === undefined ? null : boundUs(from, calendar, 0);
  const toUs = to === undefined ? endOfToday(calendar, nowUs) : boundUs(to, calendar, 1);
  const problems = [
    ['from', problemWith(from, fromUs, calendar, unit)] as const,
    ['to', problemWith(to, toUs, calendar, unit)] as const,
  ];
  const errors = problems.flatMap(([field, message]) => (message ? [{ field, message }] : []));
  if (errors.length > 0 || toUs === null) return invalid(errors);
  if (fromUs !== null && fromUs >= toUs) {
    const message = to === undefined ? 'must not be in the future' : 'must be before to';
    return invalid([{ field: 'from', message }]);
  }
  return { kind: 'range', range: { fromUs, toUs } };
}

function invalid(errors: FieldError[]): RangeAnswer {
  return { kind: 'invalid', errors };
}

/** With a beginning, as the stores need it: no trace is older than 1970. */
export function wholeRange(range: AskedRange | null, calendar: Calendar): TimeRange | null {
  return range && { fromUs: range.fromUs ?? calendar.startOfDay(-1), toUs: range.toUs };
}

function endOfToday(calendar: Calendar, nowUs: number): number {
  return calendar.startOfDay(calendar.dayOf(nowUs) + 1);
}

const lastForm = /^([1-9][0-9]{0,3})([hd])$/;
export const lastPattern = lastForm.source;
export const lastRule = 'must be a number of hours or days up to 9999, such as 24h or 30d';

/** `24h`: the last 24 whole hours and the current one. `7d`: the last seven days, today included. */
function lastRange(text: string, calendar: Calendar, nowUs: number): AskedRange | null {
  const [, digits, unit] = lastForm.exec(text) ?? [];
  if (digits === undefined) return null;
  const count = Number(digits);
  if (unit === 'd') {
    const today = calendar.dayOf(nowUs);
    return { fromUs: calendar.startOfDay(today - count + 1), toUs: endOfToday(calendar, nowUs) };
  }
  const hourUs = calendar.hourOf(nowUs) * usPerSecond;
  const fromUs = calendar.hourOf(hourUs - count * usPerHour) * usPerSecond;
  return { fromUs, toUs: nextHour(calendar, nowUs) * usPerSecond };
}

const usPerSecond = 1_000_000;
const usPerHour = 3_600 * usPerSecond;

const dateForm = /^\d{4}-\d\d-\d\d$/;

/** The start of a day that is `daysLater` after a date, or an instant; null if the text is neither. */
function boundUs(text: string, calendar: Calendar, daysLater: number): number | null {
  const isDate = dateForm.test(text);
  const us = parseTimestamp(isDate ? `${text}T00:00:00Z` : text);
  if (us === null || us < 0 || us >= endUs) return null;
  return isDate ? calendar.startOfDay(us / usPerDay + daysLater) : us;
}

/** Whether a text is a date or an instant, in any time zone. */
export function isBound(text: string): boolean {
  return boundUs(text, calendarOf('UTC'), 0) !== null;
}

const usPerDay = 24 * usPerHour;
/** Microseconds are exact numbers until the year 2255. */
const endUs = Date.UTC(2200, 0, 1) * 1000;

export const boundRule =
  'must be a date such as 2026-11-04, or an RFC 3339 time such as 2026-11-04T09:00:00Z (with + as %2B), from 1970 to 2199';

function problemWith(
  text: string | undefined,
  us: number | null,
  calendar: Calendar,
  unit: RangeUnit,
): string | null {
  if (text === undefined) return null;
  if (us === null) return boundRule;
  if (unit === 'instant' || calendar.isHourStart(us)) return null;
  return `must be a whole hour in the time zone of the team, ${calendar.timeZone}, or a date`;
}
