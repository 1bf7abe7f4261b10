/**
 * The days and hours of a time zone. A day is from its start to the start of the next one, so it may have 23 or 24.5 hours, and some days do
 * not exist (Samoa, 30 December 2011). Hours begin when the local clock shows a whole hour, when a day begins, and when the offset
 * changes, so that every hour lies within one day and has at most 60 minutes.
 */
export interface Calendar {
  readonly timeZone: string;
  /** Local days since 1970-01-01. */
  dayOf(us: number): number;
  /** The start of an hour, in seconds since 1970. */
  hourOf(us: number): number;
  /** The start of a day in microseconds. The start of a day that does not exist is the start of the next one. */
  startOfDay(day: number): number;
  /** Whether an hour or a day begins at this time. */
  isHourStart(us: number): boolean;
}

const usPerSecond = 1_000_000;
const secondsPerHour = 3_600;
const secondsPerDay = 86_400;
const usPerDay = secondsPerDay * usPerSecond;

/** True if the name is a time zone of the IANA database. Fixed offsets such as `+01:00` are not. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** The Monday of the week that contains a day. */
export function mondayOf(day: number): number {
  // The first of January 1970 was a Thursday.
  return day - ((((day + 3) % daysPerWeek) + daysPerWeek) % daysPerWeek);
}

export const daysPerWeek = 7;

/** The first day of the month that contains a day, `monthsLater` months later. */
export function firstOfMonth(day: number, monthsLater = 0): number {
  const date = new Date(day * msPerDay);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + monthsLater, 1) / msPerDay;
}

const msPerDay = 86_400_000;

const calendars = new Map<string, Calendar>();

export function calendarOf(timeZone: string): Calendar {
  let calendar = calendars.get(timeZone);
  if (!calendar) {
    calendar = timeZone === 'UTC' ? utc : new ZoneCalendar(timeZone);
    calendars.set(timeZone, calendar);
  }
  return calendar;
}

const utc: Calendar = {
  timeZone: 'UTC',
  dayOf: (us) => Math.floor(us / usPerDay),
  hourOf: (us) => {
    const second = Math.floor(us / usPerSecond);
    return second - (second % secondsPerHour);
  },
  startOfDay: (day) => day * usPerDay,
  isHourStart: (us) => us % (secondsPerHour * usPerSecond) === 0,
};

/** A time in which the offset does not change. */
interface Segment {
  fromS: number;
  toS: number;
  offsetS: number;
}

class ZoneCalendar implements Calendar {
  readonly timeZone: string;
  /** Found so far, in no order. A team's traces are almost all in one or two. */
  readonly #segments: Segment[] = [];
  readonly #dayStarts = new Map<number, number>();
  #last: Segment = { fromS: 0, toS: 0, offsetS: 0 };

  constructor(timeZone: string) {
    this.timeZone = timeZone;
  }

  dayOf(us: number): number {
    const second = Math.floor(us / usPerSecond);
    const date = Math.floor((second + this.#segmentAt(second).offsetS) / secondsPerDay);
    // If the clock is set back shortly after midnight, the date before is shown again. That time belongs to the day that has begun.
    return us >= this.startOfDay(date + 1) ? date + 1 : date;
  }

  hourOf(us: number): number {
    const second = Math.floor(us / usPerSecond);
    const { fromS, offsetS } = this.#segmentAt(second);
    const local = second + offsetS;
    return Math.max(second - (local % secondsPerHour), fromS);
  }

  startOfDay(day: number): number {
    let start = this.#dayStarts.get(day);
    if (start === undefined) {
      const date = new Temporal.PlainDate(1970, 1, 1).add({ days: day });
      start = date.toZonedDateTime(this.timeZone).epochMilliseconds * 1000;
      if (this.#dayStarts.size >= dayStartsMax) this.#dayStarts.clear();
      this.#dayStarts.set(day, start);
    }
    return start;
  }

  isHourStart(us: number): boolean {
    return us % usPerSecond === 0 && this.hourOf(us) === us / usPerSecond;
  }

  #segmentAt(second: number): Segment {
    const last = this.#last;
    if (second >= last.fromS && second < last.toS) return last;
    let found = this.#segments.find(({ fromS, toS }) => second >= fromS && second < toS);
    if (!found) this.#segments.push((found = findSegment(this.timeZone, second)));
    this.#last = found;
    return found;
  }
}

/** The start of the hour after the one that contains this time, in seconds since 1970. */
export function nextHour(calendar: Calendar, us: number): number {
  const hour = calendar.hourOf(us);
  let next = hour + secondsPerHour;
  // An hour is shorter if the offset changes in it.
  for (;;) {
    const before = calendar.hourOf(next * usPerSecond - 1);
    if (before <= hour) return next;
    next = before;
  }
}

const dayStartsMax = 4_096;

function findSegment(timeZone: string, second: number): Segment {
  const time = Temporal.Instant.fromEpochMilliseconds(second * 1000).toZonedDateTimeISO(timeZone);
  const next = time.getTimeZoneTransition('next');
  // The transition before a time does not include the time itself.
  const before = time.add({ seconds: 1 }).getTimeZoneTransition('previous');
  return {
    fromS: before === null ? -Infinity : before.epochMilliseconds / 1000,
    toS: next === null ? Infinity : next.epochMilliseconds / 1000,
    offsetS: time.offsetNanoseconds / 1e9,
  };
}
