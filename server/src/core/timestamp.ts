const form =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/**
 * Microseconds since 1970 of an RFC 3339 time with any offset, such as `2026-11-04T10:30:00.5+01:00`; null if the text is not such a
 * time. Digits below a microsecond are dropped.
 */
export function parseTimestamp(text: string): number | null {
  const found = form.exec(text);
  if (!found) return null;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map(Number) as SixNumbers;
  const [fraction = '', sign, offsetHour = '0', offsetMinute = '0'] = found.slice(7);
  const offsetMinutes = Number(offsetHour) * 60 + Number(offsetMinute);
  if (!isDate(year, month, day) || hour > 23 || minute > 59 || second > 60) return null;
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return null;
  const local = Date.UTC(year, month - 1, day, hour, minute) / msPerMinute;
  const utc = sign === '-' ? local + offsetMinutes : local - offsetMinutes;
  // A leap second ends a UTC day. It has no number of its own since 1970, so it is the second before it.
  if (second === 60 && utc % minutesPerDay !== minutesPerDay - 1) return null;
  const microseconds = Number(fraction.slice(0, 6).padEnd(6, '0'));
  return (utc * 60 + Math.min(second, 59)) * 1_000_000 + microseconds;
}

type SixNumbers = [number, number, number, number, number, number];
const msPerMinute = 60_000;
const minutesPerDay = 24 * 60;

/** Whether the calendar has this day: 30 February would become a day in March. */
function isDate(year: number, month: number, day: number): boolean {
  return month >= 1 && month <= 12 && new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day;
}
