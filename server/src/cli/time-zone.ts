import { isTimeZone } from '../core/calendar.ts';
import { OperatorError } from '../errors.ts';
import type { Flag } from './command.ts';
import { closest } from './suggestion.ts';

export const timeZoneFlag: Readonly<Record<string, Flag>> = {
  'time-zone': { help: 'time zone of the days in its reports, such as Europe/Berlin' },
};

/** The name of a time zone in its usual spelling. Upper and lower case count as the same. */
export function parseTimeZone(text: string): string {
  if (isTimeZone(text)) {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(text).timeZoneId;
  }
  const meant = suggestedZone(text);
  const hint =
    meant === null
      ? 'Use a name from the IANA database, such as Europe/Berlin or UTC.'
      : `Did you mean ${meant}?`;
  throw new OperatorError(`There is no time zone "${text}". ${hint}`);
}

/** A misspelled name, or only the name of the city. */
function suggestedZone(text: string): string | null {
  const zones = ['UTC', ...Intl.supportedValuesOf('timeZone')];
  const typed = text.trim().replaceAll(' ', '_');
  const byName = closest(typed, zones);
  if (byName !== null) return byName;
  const cityOf = (zone: string): string => zone.slice(zone.lastIndexOf('/') + 1);
  const city = closest(cityOf(typed), zones.map(cityOf));
  return zones.find((zone) => cityOf(zone) === city) ?? null;
}
