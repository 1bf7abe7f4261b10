import { boundRule, isBound } from '../core/asked-range.ts';
import type { Clock } from '../core/clock.ts';
import { dayOf, formatDay } from '../core/clock.ts';
import { parseTimestamp } from '../core/timestamp.ts';
import type { FieldName } from '../core/trace-fields.ts';
import { limits } from '../limits.ts';

/** A rule for the value of a field that JSON Schema cannot express: the value of the keyword `check` in its schema. */
export type Check =
  | { kind: 'time' }
  | { kind: 'metadata' }
  /** A bound of a range: a date or a time. */
  | { kind: 'bound' }
  /** All parts of a count together are not more than the count. */
  | { kind: 'part'; whole: FieldName; otherParts: readonly FieldName[] };

/** Ajv calls it with the value of the keyword and the value of the field. It leaves the reason for a failure in `errors`. */
interface CheckFunction {
  (check: Check, value: unknown, schema?: unknown, context?: { parentData: unknown }): boolean;
  errors?: { keyword: string; message: string; params: Record<string, never> }[];
}

/** The keyword `check`. Values of a wrong type pass: the keyword `type` reports them. */
export function checkKeyword(clock: Clock): { keyword: string; validate: CheckFunction } {
  const keyword = 'check';
  const validate: CheckFunction = (check, value, _schema, context) => {
    const message = problemWith(check, value, context?.parentData, clock);
    if (message === null) return true;
    validate.errors = [{ keyword, message, params: {} }];
    return false;
  };
  return { keyword, validate };
}

function problemWith(check: Check, value: unknown, body: unknown, clock: Clock): string | null {
  switch (check.kind) {
    case 'time':
      return typeof value === 'string' ? problemWithTime(value, clock()) : null;
    case 'metadata':
      return isObject(value) ? problemWithMetadata(value) : null;
    case 'bound':
      return typeof value === 'string' && !isBound(value) ? boundRule : null;
    case 'part':
      return typeof value === 'number' && isObject(body)
        ? problemWithPart(value, check, body)
        : null;
  }
}

function problemWithTime(text: string, nowUs: number): string | null {
  const us = parseTimestamp(text);
  if (us === null) return 'must be an RFC 3339 time, such as 2026-11-04T09:30:00Z';
  if (us < limits.startedAtUsMin) return `must not be before ${earliestDay}`;
  return us > nowUs + limits.startedAtAheadUsMax
    ? `must not be more than ${hoursAheadMax} hours ahead of the server's clock`
    : null;
}

const earliestDay = formatDay(dayOf(limits.startedAtUsMin));
const hoursAheadMax = limits.startedAtAheadUsMax / 3_600_000_000;

/** Says what is wrong, but not with which entry: a name may be private, or long. */
function problemWithMetadata(metadata: Values): string | null {
  const { metadataEntriesMax, metadataNameCharsMax, metadataValueCharsMax } = limits;
  const names = Object.keys(metadata);
  if (names.length > metadataEntriesMax) return `must have at most ${metadataEntriesMax} entries`;
  for (const name of names) {
    const value = metadata[name];
    if (name === '') return 'must not have an entry without a name';
    if (isLonger(name, metadataNameCharsMax)) {
      return `must have names of at most ${metadataNameCharsMax} characters`;
    }
    // With U+FFFD in their place, two names could become the same.
    if (!name.isWellFormed()) return 'must not have lone surrogates in a name';
    if (controlCharacter.test(name)) return 'must not have control characters in a name';
    if (typeof value !== 'string') return 'must have only strings as values';
    if (isLonger(value, metadataValueCharsMax)) {
      return `must have values of at most ${metadataValueCharsMax} characters`;
    }
  }
  return null;
}

const controlCharacter = /\p{Cc}/u;

/** Counts code points, as JSON Schema does for the other fields. */
function isLonger(text: string, charsMax: number): boolean {
  if (text.length <= charsMax) return false;
  return text.length > 2 * charsMax || Array.from(text).length > charsMax;
}

type PartCheck = Extract<Check, { kind: 'part' }>;

/** Nothing is compared if the whole was not sent. A part that is too large on its own is the only one that is reported. */
function problemWithPart(value: number, { whole, otherParts }: PartCheck, body: Values) {
  const sum = body[whole];
  if (typeof sum !== 'number') return null;
  if (value > sum) return `must not be more than ${whole}`;
  const others = otherParts.map((name) => countOf(body[name]));
  const isTogetherTooMuch =
    value > 0 &&
    others.every((count) => count <= sum) &&
    others.reduce((total, count) => total + count, value) > sum;
  return isTogetherTooMuch
    ? `together with ${otherParts.join(', ')} must not be more than ${whole}`
    : null;
}

function countOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

type Values = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
