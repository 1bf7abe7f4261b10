import type { CallIds, TraceWrite } from './trace-writer.ts';

/**
 * Calls that were reported before are left out, whichever way they came in. The marks of a stored call are kept in the table of
 * idempotent requests, for as long as those; none of them looks like the hash of an idempotency key, which has no colon.
 */
const spanMark = (id: string): string => `s:${id}`;
const responseMark = (id: string): string => `r:${id}`;
/** Of a span that contains a stored call: an outer instrumentation reports the same call again. */
const outerMark = (id: string): string => `o:${id}`;

type Calls = NonNullable<TraceWrite['calls']>;

/** The marks that show that a call was stored before. */
export function marksToFind(calls: Calls): string[] {
  const marks: string[] = [];
  for (const reports of calls) {
    for (const { span, outerSpan, response } of reports) {
      if (span !== null) marks.push(spanMark(span), outerMark(span));
      if (outerSpan !== null) marks.push(spanMark(outerSpan));
      if (response !== null) marks.push(responseMark(response));
    }
  }
  return marks;
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
  const remember = (mark: string): void => {
    if (seen.has(mark)) return;
    seen.add(mark);
    marks.push(mark);
  };
  for (const [i, reports] of calls.entries()) {
    const isDuplicate = reports.some((ids) => isSeen(ids, seen));
    if (isDuplicate) duplicates.push(i);
    for (const { span, outerSpan, response } of reports) {
      // What is around a duplicate is around the stored call, too.
      if (outerSpan !== null) remember(outerMark(outerSpan));
      if (span !== null && !isDuplicate) remember(spanMark(span));
      if (response !== null) remember(responseMark(response));
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

function isSeen({ span, outerSpan, response }: CallIds, seen: SeenMarks): boolean {
  return (
    (span !== null && (seen.has(spanMark(span)) || seen.has(outerMark(span)))) ||
    (outerSpan !== null && seen.has(spanMark(outerSpan))) ||
    (response !== null && seen.has(responseMark(response)))
  );
}
