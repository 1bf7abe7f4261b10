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

/** The marks that show that a call was stored before. */
export function marksToFind(calls: Calls): string[] {
  const marks = new Set<string>();
  for (const reports of calls) {
    for (const ids of reports) for (const mark of tellingMarks(marksOf(ids))) marks.add(mark);
  }
  return [...marks];
}

function tellingMarks({ own, asOuter, outer, response }: CallMarks): string[] {
  return [own, asOuter, outer, response].filter((mark) => mark !== null);
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
export function countOnce(write: TraceWrite, calls: Calls, seen: SeenMarks): CountedWrite {
  const duplicates: number[] = [];
  const marks: string[] = [];
  const remember = (mark: string | null): void => {
    if (mark === null || seen.has(mark)) return;
    seen.add(mark);
    marks.push(mark);
  };
  for (const [i, reports] of calls.entries()) {
    const ofReports = reports.map(marksOf);
    const isDuplicate = ofReports.some((one) => tellingMarks(one).some((mark) => seen.has(mark)));
    if (isDuplicate) duplicates.push(i);
    for (const { own, outerAsOuter, response } of ofReports) {
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
