/** Calendar dates are texts such as `2026-11-04`, which sort as they should. */
const dateForm = /^\d{4}-\d\d-\d\d$/;
const dayMs = 86_400_000;

export function isDate(text: string): boolean {
  return dateForm.test(text) && addDays(text, 0) === text;
}

/** Not a date if the day does not exist. */
export function addDays(date: string, days: number): string {
  const ms = Date.parse(`${date}T00:00:00Z`) + days * dayMs;
  return Number.isFinite(ms) ? new Date(ms).toISOString().slice(0, 10) : '';
}

/** The same day of another month, or its last day if it is shorter. */
export function addMonths(date: string, months: number): string {
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number);
  const first = new Date(Date.UTC(year, month - 1 + months, 1));
  const daysInMonth = new Date(
    Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0),
  ).getUTCDate();
  return addDays(first.toISOString().slice(0, 10), Math.min(day, daysInMonth) - 1);
}

export function daysBetween(from: string, to: string): number {
  return Math.round((Date.parse(`${to}T00:00:00Z`) - Date.parse(`${from}T00:00:00Z`)) / dayMs);
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** What a clock in this time zone shows, as if it were UTC. */
export function localMs(timeZone: string, ms: number): number {
  let format = formats.get(timeZone);
  if (format === undefined) {
    const numeric = 'numeric';
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      calendar: 'iso8601',
      year: numeric,
      month: numeric,
      day: numeric,
      hour: numeric,
      minute: numeric,
      second: numeric,
    });
    formats.set(timeZone, format);
  }
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  const part = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0;
  return Date.UTC(
    part('year'),
    part('month') - 1,
    part('day'),
    part('hour'),
    part('minute'),
    part('second'),
  );
}

/** When a clock in this time zone shows this time. If it is skipped there, the time at which the clock is set forward. */
export function instantOf(timeZone: string, local: number): number {
  const offsets = [-dayMs, dayMs].map((away) => localMs(timeZone, local + away) - (local + away));
  const [before = 0, after = 0] = offsets;
  const found = [before, after]
    .map((offset) => local - offset)
    .filter((ms) => localMs(timeZone, ms) === local);
  // A time that exists twice is the first of the two.
  if (found.length > 0) return Math.min(...found);
  let [low, high] = [local - Math.max(before, after), local - Math.min(before, after)];
  while (high - low > 1_000) {
    const middle = Math.floor((low + high) / 2_000) * 1_000;
    if (localMs(timeZone, middle) > local) high = middle;
    else low = middle;
  }
  return high;
}

export function todayIn(timeZone: string, nowMs: number): string {
  return new Date(localMs(timeZone, nowMs)).toISOString().slice(0, 10);
}
