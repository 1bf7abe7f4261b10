import { addDays, addMonths, instantOf, isDate, localMs } from './local-time.ts';
import type { Range } from './range.ts';

/** A range as the server understood it: times with an offset, null for all time. */
export interface AnsweredRange {
  from: string | null;
  to: string | null;
  time_zone: string;
}

export interface Span {
  fromMs: number;
  toMs: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * The period before, of the same length. If the range is not over yet, its first part: until the same time of day, so that a morning is
 * not compared with a whole day. Null if there is none.
 */
export function previousPeriod(range: Range, answered: AnsweredRange, nowMs: number): Span | null {
  if (answered.from === null || answered.to === null) return null;
  const zone = answered.time_zone;
  const [fromMs, toMs] = [Date.parse(answered.from), Date.parse(answered.to)];
  const end = Math.min(localMs(zone, toMs), nextHour(localMs(zone, nowMs)));
  const from = localMs(zone, fromMs);
  // A range in the future has no part that could be compared.
  if (end <= from) return null;
  const back = stepBack(range, from, localMs(zone, toMs));
  const span = {
    fromMs: instantOf(zone, back(from)),
    toMs: Math.min(fromMs, instantOf(zone, back(end))),
  };
  return span.toMs > span.fromMs ? span : null;
}

function nextHour(local: number): number {
  return Math.floor(local / hourMs) * hourMs + hourMs;
}

/** How to go back by one period, in local time. */
function stepBack(range: Range, from: number, to: number): (local: number) => number {
  if (range.kind === 'month') {
    return (local) => {
      const date = new Date(local).toISOString().slice(0, 10);
      return Date.parse(`${addMonths(date, -1)}T00:00:00Z`) + (local % dayMs);
    };
  }
  if (!isOfDays(range)) return (local) => local - (to - from);
  // Some days begin at 01:00, so the number of days is rounded.
  const days = Math.round((to - from) / dayMs);
  const midnight = Math.floor(from / dayMs) * dayMs;
  return (local) => (local === from ? midnight : local) - days * dayMs;
}

function isOfDays(range: Range): boolean {
  if (range.kind === 'last') return range.unit === 'd';
  return range.kind === 'between' && isDate(range.from) && isDate(range.to);
}

export function spanParameters({ fromMs, toMs }: Span): Record<string, string> {
  return { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() };
}

/** `Nov 9 – 15, 2026`, `Dec 20, 2025 – Jan 3, 2026`, `Nov 14, 09:00 – 10:00`. Both are local times. */
export function spanWords(from: number, to: number): string {
  if (from % dayMs !== 0 || to % dayMs !== 0) {
    const [first, last] = [dateOf(from), dateOf(to)];
    if (first === last) return `${shortDay(first)}, ${clockOf(from)} – ${clockOf(to)}`;
    // A day that begins needs no clock.
    const start = from % dayMs === 0 ? '' : `, ${clockOf(from)}`;
    return `${shortDay(first)}${start} – ${shortDay(last)}, ${clockOf(to)}`;
  }
  const [first, last] = [dateOf(from), addDays(dateOf(to), -1)];
  const year = last.slice(0, 4);
  if (first === last) return `${shortDay(first)}, ${year}`;
  if (first.slice(0, 4) !== year) {
    return `${shortDay(first)}, ${first.slice(0, 4)} – ${shortDay(last)}, ${year}`;
  }
  const end = first.slice(0, 7) === last.slice(0, 7) ? Number(last.slice(8)) : shortDay(last);
  return `${shortDay(first)} – ${end}, ${year}`;
}

function dateOf(local: number): string {
  return new Date(local).toISOString().slice(0, 10);
}

function clockOf(local: number): string {
  return new Date(local).toISOString().slice(11, 16);
}

const dayFormat = new Intl.DateTimeFormat('en-US', {
  month: 'short',
  day: 'numeric',
  timeZone: 'UTC',
});

/** `Nov 14`. */
export function shortDay(date: string): string {
  return dayFormat.format(Date.parse(`${date}T00:00:00Z`));
}

/** The local time of a text with an offset, as if it were UTC. */
export function localTimeOf(text: string): number {
  return Date.parse(`${text.slice(0, 19)}Z`);
}

export function answeredWords({ from, to }: AnsweredRange): string | null {
  if (from === null || to === null) return null;
  return spanWords(localTimeOf(from), localTimeOf(to));
}
