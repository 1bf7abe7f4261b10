import { addDays, addMonths, daysBetween, isDate, todayIn } from './local-time.ts';

/** The time range of a view. Dates and times are those of the team's time zone. */
export type Range =
  /** `24h`, `7d`: up to now. */
  | { kind: 'last'; count: number; unit: 'h' | 'd' }
  | { kind: 'month'; which: 'this' | 'last' }
  /** Dates, both included, or times with an offset, of which `to` is excluded. */
  | { kind: 'between'; from: string; to: string }
  | { kind: 'all' };

export const lastDays = (count: number): Range => ({ kind: 'last', count, unit: 'd' });
export const allTime: Range = { kind: 'all' };

/** What the range picker offers. */
export const presets: readonly { range: Range; name: string }[] = [
  { range: { kind: 'last', count: 24, unit: 'h' }, name: 'Last 24 hours' },
  { range: lastDays(7), name: 'Last 7 days' },
  { range: lastDays(30), name: 'Last 30 days' },
  { range: lastDays(90), name: 'Last 90 days' },
  { range: { kind: 'month', which: 'this' }, name: 'This month' },
  { range: { kind: 'month', which: 'last' }, name: 'Last month' },
  { range: allTime, name: 'All time' },
];

/** Null if the address has none, or none that makes sense. */
export function readRange(query: URLSearchParams): Range | null {
  const [, count, unit] = /^([1-9][0-9]{0,3})([hd])$/.exec(query.get('last') ?? '') ?? [];
  if (count !== undefined) return { kind: 'last', count: Number(count), unit: unit as 'h' | 'd' };
  const period = query.get('period');
  if (period === 'this-month') return { kind: 'month', which: 'this' };
  if (period === 'last-month') return { kind: 'month', which: 'last' };
  if (period === 'all') return allTime;
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? ''];
  return isBound(from) && isBound(to) && isInOrder(from, to) ? { kind: 'between', from, to } : null;
}

const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)$/;

function isBound(text: string): boolean {
  return isDate(text) || (timeForm.test(text) && Number.isFinite(Date.parse(text)));
}

function isInOrder(from: string, to: string): boolean {
  if (isDate(from) && isDate(to)) return from <= to;
  // A date and a time can only be compared in the team's time zone, which the server does.
  return isDate(from) || isDate(to) || Date.parse(from) < Date.parse(to);
}

/** As in the address. */
export function rangePairs(range: Range): [string, string][] {
  switch (range.kind) {
    case 'last':
      return [['last', `${range.count}${range.unit}`]];
    case 'month':
      return [['period', `${range.which}-month`]];
    case 'between':
      return [
        ['from', range.from],
        ['to', range.to],
      ];
    case 'all':
      return [['period', 'all']];
  }
}

export function isSameRange(a: Range, b: Range): boolean {
  return JSON.stringify(rangePairs(a)) === JSON.stringify(rangePairs(b));
}

/** As parameters of the API. Months depend on the current day of the team. */
export function rangeParameters(
  range: Range,
  timeZone: string,
  nowMs: number,
): Record<string, string> {
  switch (range.kind) {
    case 'last':
      return { last: `${range.count}${range.unit}` };
    case 'month':
      return monthOf(range.which, todayIn(timeZone, nowMs));
    case 'between':
      return { from: range.from, to: range.to };
    case 'all':
      return {};
  }
}

/** This month ends today, since nothing is known about the days to come. */
function monthOf(which: 'this' | 'last', today: string): { from: string; to: string } {
  const first = `${today.slice(0, 8)}01`;
  if (which === 'this') return { from: first, to: today };
  return { from: addMonths(first, -1), to: addDays(first, -1) };
}

export type Interval = 'hour' | 'day' | 'week' | 'month';

/** Few enough bars to tell them apart, and enough to see a change. */
const hoursMax = 72;
const daysMax = 92;
const weeksDaysMax = 366;

/** Null for all time, which depends on the traces. */
export function intervalOf(range: Range): Interval | null {
  switch (range.kind) {
    case 'last':
      return intervalOfHours(range.unit === 'h' ? range.count : range.count * 24);
    case 'month':
      return 'day';
    case 'between':
      return intervalOfHours(hoursBetween(range.from, range.to));
    case 'all':
      return null;
  }
}

function hoursBetween(from: string, to: string): number {
  if (isDate(from) || isDate(to)) {
    return 24 * (daysBetween(from.slice(0, 10), to.slice(0, 10)) + 1);
  }
  return (Date.parse(to) - Date.parse(from)) / 3_600_000;
}

export function intervalOfHours(hours: number): Interval {
  if (hours <= hoursMax) return 'hour';
  const days = hours / 24;
  if (days <= daysMax) return 'day';
  return days <= weeksDaysMax ? 'week' : 'month';
}
