const monthDay = new Intl.DateTimeFormat('en-US', { month: 'short', day: 'numeric' });
const monthDayYear = new Intl.DateTimeFormat('en-US', { dateStyle: 'medium' });
const inFull = new Intl.DateTimeFormat('en-US', {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
  timeZoneName: 'short',
});
const clockTime = new Intl.DateTimeFormat('en-US', { timeStyle: 'medium', hourCycle: 'h23' });

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** `just now`, `20 s ago`, `3 min ago`, `5 h ago`, `2 d ago`, then the date. A clock that runs behind the server's shows `just now`. */
export function relativeTime(atMs: number, nowMs: number): string {
  const ageMs = nowMs - atMs;
  if (ageMs < 5_000) return 'just now';
  if (ageMs < minuteMs) return `${Math.floor(ageMs / 1_000)} s ago`;
  if (ageMs < hourMs) return `${Math.floor(ageMs / minuteMs)} min ago`;
  if (ageMs < dayMs) return `${Math.floor(ageMs / hourMs)} h ago`;
  if (ageMs < 7 * dayMs) return `${Math.floor(ageMs / dayMs)} d ago`;
  const at = new Date(atMs);
  const isThisYear = at.getFullYear() === new Date(nowMs).getFullYear();
  return (isThisYear ? monthDay : monthDayYear).format(at);
}

/** In the user's time zone, with its name. */
export function exactTime(atMs: number): string {
  return inFull.format(atMs);
}

/** `14:03:11`. */
export function timeOfDay(atMs: number): string {
  return clockTime.format(atMs);
}

/** `2026-11-15`, the day that sums are kept by. */
export function utcDay(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}
