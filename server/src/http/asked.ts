import { hasRange, readRange, wholeRange } from '../core/asked-range.ts';
import type { AskedRange, RangeText, RangeUnit } from '../core/asked-range.ts';
import { calendarOf } from '../core/calendar.ts';
import type { Calendar } from '../core/calendar.ts';
import type { TraceCriteria } from '../core/query.ts';
import { readFilter, single } from '../core/question.ts';
import type { SentParameters } from '../core/question.ts';
import { fail } from '../errors.ts';
import type { TraceReader } from '../store/trace-reader.ts';

/** The parameters that every question shares, as validated values. */
export interface Asked {
  criteria: TraceCriteria;
  /** As it was asked for; null for all time. */
  range: AskedRange | null;
}

type Zones = Pick<TraceReader, 'timeZone'>;

/** The days of a team. */
export async function calendarOfTeam(reader: Zones, teamId: string): Promise<Calendar> {
  return calendarOf(await reader.timeZone(teamId));
}

/** The time zone is read only if it matters. */
export async function readAsked(
  reader: Zones,
  teamId: string,
  sent: SentParameters,
  nowUs: number,
  unit: RangeUnit = 'hour',
): Promise<Asked> {
  if (!hasRange(rangeText(sent)))
    return { criteria: { ...readFilter(sent), range: null }, range: null };
  return askedIn(await calendarOfTeam(reader, teamId), sent, nowUs, unit);
}

/** Fails with 422 if the range is not valid in this time zone. */
export function askedIn(
  calendar: Calendar,
  sent: SentParameters,
  nowUs: number,
  unit: RangeUnit,
): Asked {
  const answer = readRange(rangeText(sent), calendar, nowUs, unit);
  if (answer.kind === 'invalid') return fail('invalid_input', { errors: answer.errors });
  const { range } = answer;
  return { criteria: { ...readFilter(sent), range: wholeRange(range, calendar) }, range };
}

function rangeText(sent: SentParameters): RangeText {
  return { from: single(sent, 'from'), to: single(sent, 'to'), last: single(sent, 'last') };
}
