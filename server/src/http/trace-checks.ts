import { boundRule, isBound } from '../core/asked-range.ts';
import type { Clock } from '../core/clock.ts';
import { parseTimestamp } from '../core/timestamp.ts';
import {
  earliestDay,
  hoursAheadMax,
  latestStart,
  problemWithMetadata,
  problemWithPart,
} from '../core/trace-rules.ts';
import type { PartOf } from '../core/trace-rules.ts';
import { limits } from '../limits.ts';

/** A rule for the value of a field that JSON Schema cannot express: the value of the keyword `check` in its schema. */
export type Check =
  | { kind: 'time' }
  | { kind: 'metadata' }
  /** A bound of a range: a date or a time. */
  | { kind: 'bound' }
  /** All parts of a count together are not more than the count. */
  | ({ kind: 'part' } & PartOf);

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
  return us > latestStart(nowUs)
    ? `must not be more than ${hoursAheadMax} hours ahead of the server's clock`
    : null;
}

type Values = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
