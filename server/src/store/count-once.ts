import type { CallIds, TraceWrite } from './trace-writer.ts';

/**
 * Calls that were reported before are left out, whichever way they came in. Each id of a stored call is a mark, which is kept in the table
 * of idempotent requests, for as long as those; none looks like the hash of an idempotency key, which has no colon.
 */

/** What a mark stands for: bits, since a span can be both. */
const isCall = 1;
/** A span that contains a stored call. If it is a model call too, it reports the same call again. */
const isAroundCall = 2;

/** A mark and what it stands for. */
export type Mark = readonly [mark: string, meaning: number];

/** The ids of each report of each call. */
type Calls = readonly (readonly CallIds[])[];

/** The marks that show whether a call was stored before. Some may be in the list twice. */
export function marksToFind(calls: Calls): string[] {
  const marks: string[] = [];
  let lastOuter: string | null = null;
  for (const reports of calls) {
    for (const { span, outerSpan, response } of reports) {
      if (span !== null) marks.push(span);
      // Calls that follow each other often have the same.
      if (outerSpan !== null && outerSpan !== lastOuter) marks.push(outerSpan);
      if (response !== null) marks.push(response);
      lastOuter = outerSpan;
    }
  }
  return marks;
}

/** Marks that were found or added. */
export interface KnownMarks {
  get(mark: string): number | undefined;
  set(mark: string, meaning: number): void;
}

/** What is left of a write. */
export interface CountedWrite {
  write: TraceWrite;
  /** The indexes of the drafts that were left out, ascending. */
  duplicates: readonly number[];
  /** The marks to store with the rest, in place of known ones; none if there is no rest. */
  marks: readonly Mark[];
}

/** Leaves out calls that are known, and those that the write contains twice. The others become known. */
export function countOnce(write: TraceWrite, calls: Calls, known: KnownMarks): CountedWrite {
  const duplicates: number[] = [];
  // Each kind is in another part of the table, so they are stored one after the other.
  const changed = { spans: new Map<string, number>(), responses: new Map<string, number>() };
  const meaningOf = (mark: string | null): number => (mark === null ? 0 : (known.get(mark) ?? 0));
  const remember = (kind: keyof typeof changed, mark: string | null, meaning: number): void => {
    if (mark === null) return;
    const before = known.get(mark) ?? 0;
    if ((before & meaning) !== 0) return;
    known.set(mark, before | meaning);
    changed[kind].set(mark, before | meaning);
  };
  for (const [i, reports] of calls.entries()) {
    const isDuplicate = reports.some(
      ({ span, outerSpan, response }) =>
        meaningOf(span) !== 0 || (meaningOf(outerSpan) & isCall) !== 0 || meaningOf(response) !== 0,
    );
    if (isDuplicate) duplicates.push(i);
    for (const { span, outerSpan, response } of reports) {
      // What is around a duplicate is around the stored call, too.
      remember('spans', outerSpan, isAroundCall);
      if (!isDuplicate) remember('spans', span, isCall);
      remember('responses', response, isCall);
    }
  }
  const marks = [...changed.spans, ...changed.responses];
  if (duplicates.length === 0) return { write, duplicates, marks };
  const isLeftOut = new Set(duplicates);
  const drafts = write.drafts.filter((_, i) => !isLeftOut.has(i));
  const timesUs = write.timesUs?.filter((_, i) => !isLeftOut.has(i)) ?? null;
  return {
    write: { ...write, drafts, timesUs },
    duplicates,
    marks: drafts.length > 0 ? marks : [],
  };
}
