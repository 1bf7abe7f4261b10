import { limits } from '../limits.ts';
import { dayOf, formatDay } from './clock.ts';
import { fieldNames, traceFields } from './trace-fields.ts';
import type { FieldKind, FieldName, NarrowTrace, PayloadName, TraceDraft } from './trace-fields.ts';

/**
 * What the value of each field must be, for traces that do not come through the schema of `POST /traces`, which has the same rules, and for
 * traces that are stored. Reasons never contain a value.
 */

type Values = Readonly<Record<string, unknown>>;
/** Null if the value is allowed. */
type Rule = (value: unknown, latestStartUs: number) => string | null;

const rules: Readonly<Record<FieldKind, Rule>> = {
  label: problemWithLabel,
  text: (value) => (typeof value === 'string' && value.isWellFormed() ? null : 'must be Unicode'),
  count: (value) =>
    Number.isInteger(value) ? problemWithSize(value, limits.countMax) : notInteger,
  dollars: (value) => problemWithSize(value, limits.costUsdMax),
  status: (value) => problemWithChoice(value, ['success', 'error']),
  source: (value) => problemWithChoice(value, ['client', 'computed']),
  time: (value, latestUs) =>
    Number.isInteger(value) && isStart(value as number, latestUs) ? null : startRule,
  metadata: (value) => problemWithMetadataText(value),
};

const notInteger = 'must be an integer';

/** The latest time at which a call can begin that is reported now. */
export function latestStart(nowUs: number): number {
  return nowUs + limits.startedAtAheadUsMax;
}

export function isStart(us: number, latestUs: number): boolean {
  return us >= limits.startedAtUsMin && us <= latestUs;
}

export const earliestDay = formatDay(dayOf(limits.startedAtUsMin));
export const hoursAheadMax = limits.startedAtAheadUsMax / 3_600_000_000;
export const startRule = `must be from ${earliestDay} to ${hoursAheadMax} hours ahead of the server's clock`;

/** A trace, or the part of it that was read. */
export type CheckedTrace = NarrowTrace & Partial<Pick<TraceDraft, PayloadName>>;

/** A field with a value that is not allowed. */
export interface BrokenRule {
  name: FieldName;
  /** What it should be. */
  rule: string;
  /** Whether it is a number that must not be added to sums, even if it fits the other fields. */
  isWrongNumber: boolean;
}

/** The fields that break a rule. */
export function brokenRules(trace: CheckedTrace, latestStartUs: number): BrokenRule[] {
  const values: Values = trace;
  const broken: BrokenRule[] = [];
  for (const name of fieldNames) {
    const value = values[name] ?? null;
    const ofValue =
      value === null ? problemIfMissing(name) : rules[traceFields[name].kind](value, latestStartUs);
    const rule = ofValue ?? problemWithParts(name, values);
    if (rule === null) continue;
    broken.push({ name, rule, isWrongNumber: ofValue !== null && isWrongNumber(name, value) });
  }
  return broken;
}

/** Whether a value that breaks the rule of its field must not be added to sums. A time that is out of range still can be. */
function isWrongNumber(name: FieldName, value: unknown): boolean {
  const { kind } = traceFields[name];
  return kind === 'time' ? !Number.isSafeInteger(value) : kind === 'count' || kind === 'dollars';
}

function problemIfMissing(name: FieldName): string | null {
  const { isRequired, kind } = traceFields[name];
  return isRequired || kind === 'status' ? 'is required' : null;
}

const controlCharacter = /\p{Cc}/u;

function problemWithLabel(value: unknown): string | null {
  if (typeof value !== 'string' || !value.isWellFormed()) return 'must be Unicode';
  if (value === '') return 'must not be empty';
  if (isLonger(value, limits.labelCharsMax)) {
    return `must be at most ${limits.labelCharsMax} characters long`;
  }
  return controlCharacter.test(value) ? 'must not contain control characters' : null;
}

function problemWithSize(value: unknown, max: number): string | null {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'must be a finite number';
  if (value < 0) return 'must be at least 0';
  return value > max ? `must be at most ${max}` : null;
}

function problemWithChoice(value: unknown, choices: readonly string[]): string | null {
  return choices.includes(value as string) ? null : `must be one of ${choices.join(', ')}`;
}

/** Counts code points, as JSON Schema does. */
function isLonger(text: string, charsMax: number): boolean {
  if (text.length <= charsMax) return false;
  return text.length > 2 * charsMax || Array.from(text).length > charsMax;
}

// --- Metadata ---

function problemWithMetadataText(value: unknown): string | null {
  try {
    const entries: unknown = typeof value === 'string' ? JSON.parse(value) : null;
    const isObject = typeof entries === 'object' && entries !== null && !Array.isArray(entries);
    return isObject ? problemWithMetadata(entries as Values) : notObject;
  } catch {
    return notObject;
  }
}

const notObject = 'must be a JSON object';

/** Says what is wrong, but not with which entry: a name may be private, or long. */
export function problemWithMetadata(metadata: Values): string | null {
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

// --- Counts with parts ---

/** The count that a count is part of, and its other parts. */
export interface PartOf {
  whole: FieldName;
  otherParts: readonly FieldName[];
}

/** Null if the field is not part of a count. */
export function wholeOf(name: FieldName): PartOf | null {
  const whole = fieldNames.find((other) => other === traceFields[name].partOf);
  if (whole === undefined) return null;
  const otherParts = fieldNames.filter(
    (other) => other !== name && traceFields[other].partOf === whole,
  );
  return { whole, otherParts };
}

const wholes = new Map(fieldNames.map((name) => [name, wholeOf(name)]));

function problemWithParts(name: FieldName, values: Values): string | null {
  const part = wholes.get(name);
  const value = values[name];
  return part && typeof value === 'number' ? problemWithPart(value, part, values) : null;
}

/** Nothing is compared if the whole was not sent. A part that is too large on its own is the only one that is reported. */
export function problemWithPart(
  value: number,
  { whole, otherParts }: PartOf,
  trace: Values,
): string | null {
  const sum = trace[whole];
  if (typeof sum !== 'number') return null;
  if (value > sum) return `must not be more than ${whole}`;
  const others = otherParts.map((name) => countOf(trace[name]));
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
