import type { CallIds, TraceWrite } from './trace-writer.ts';

/**
 * Calls that were reported before are left out, whichever way they came in. The marks of a stored call are kept in the table of
 * idempotent requests, for as long as those; none of them looks like the hash of an idempotency key, which has no colon.
 */
interface CallMarks {
  own: string | null;
  /** Of the call as a span that contains a stored call: an outer instrumentation reports the same call again. */
  asOuter: string | null;
  /** Of the span around the call, as a call and as a span that contains one. */
  outer: string | null;
  outerAsOuter: string | null;
  response: string | null;
}

function marksOf({ span, outerSpan, response }: CallIds): CallMarks {
  return {
    own: span === null ? null : `s:${span}`,
    asOuter: span === null ? null : `o:${span}`,
    outer: outerSpan === null ? null : `s:${outerSpan}`,
    outerAsOuter: outerSpan === null ? null : `o:${outerSpan}`,
    response: response === null ? null : `r:${response}`,
  };
}

type Calls = NonNullable<TraceWrite['calls']>;

/** The marks of each report of each call. */
export type MarkedCalls = readonly (readonly CallMarks[])[];

export function markCalls(calls: Calls): MarkedCalls {
  return calls.map((reports) => reports.map(marksOf));
}

/** The marks that show that a call was stored before. */
export function marksToFind(calls: MarkedCalls): string[] {
  const marks = new Set<string>();
  const find = (mark: string | null): void => void (mark !== null && marks.add(mark));
  for (const reports of calls) {
    for (const { own, asOuter, outer, response } of reports) {
      find(own);
      find(asOuter);
      find(outer);
      find(response);
    }
  }
  return [...marks];
}

/** Marks that were found or added. */
export interface SeenMarks {
  has(mark: string): boolean;
  add(mark: string): void;
}

/** What is left of a write. */
export interface CountedWrite {
  write: TraceWrite;
  /** The indexes of the drafts that were left out, ascending. */
  duplicates: readonly number[];
  /** The marks to store with the rest; empty if there is no rest. */
  marks: readonly string[];
}

/** Leaves out calls with a mark in `seen`, and those that the write contains twice. Adds the marks of the others to `seen`. */
export function countOnce(write: TraceWrite, calls: MarkedCalls, seen: SeenMarks): CountedWrite {
  const duplicates: number[] = [];
  const marks: string[] = [];
  const isSeen = (mark: string | null): boolean => mark !== null && seen.has(mark);
  const remember = (mark: string | null): void => {
    if (mark === null || seen.has(mark)) return;
    seen.add(mark);
    marks.push(mark);
  };
  for (const [i, reports] of calls.entries()) {
    const isDuplicate = reports.some(
      ({ own, asOuter, outer, response }) =>
        isSeen(own) || isSeen(asOuter) || isSeen(outer) || isSeen(response),
    );
    if (isDuplicate) duplicates.push(i);
    for (const { own, outerAsOuter, response } of reports) {
      // What is around a duplicate is around the stored call, too.
      remember(outerAsOuter);
      if (!isDuplicate) remember(own);
      remember(response);
    }
  }
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
