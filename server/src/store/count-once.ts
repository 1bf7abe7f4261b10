import { SpanMark } from './span-mark.ts';
import type { CallIds, TraceWrite } from './trace-writer.ts';

/**
 * Calls that were reported before are left out, whichever way they came in (docs/decisions/0021-reports-of-one-call.md). Each id of a
 * report is a mark, which is kept in the table of idempotent requests, for as long as those; none looks like the hash of an idempotency
 * key, which has no colon.
 */

/** A mark and what is known of it: of a span a `SpanMark` as text, of a response nothing more. */
export type Mark = readonly [mark: string, state: string];

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
  get(mark: string): string | undefined;
  set(mark: string, state: string): void;
}

/** What is left of a write. */
export interface CountedWrite {
  write: TraceWrite;
  /** The indexes of the drafts that were left out, ascending. */
  duplicates: readonly number[];
  /** The marks to store, in place of known ones, even if all drafts were left out. */
  marks: readonly Mark[];
}

/** Leaves out calls that are known, and those that the write contains twice. The others become known. */
export function countOnce(write: TraceWrite, calls: Calls, known: KnownMarks): CountedWrite {
  const marks = new ChangedMarks(known);
  const duplicates: number[] = [];
  for (const [i, reports] of calls.entries()) {
    // Reports of a call that no earlier one has to do with are always a new call, however they are nested.
    const isApart = !reports.some((report) => marks.isConnected(report));
    let added = 0;
    for (const report of reports) added += marks.add(report);
    if (!isApart && added <= 0) duplicates.push(i);
  }
  const changed = marks.changed();
  if (duplicates.length === 0) return { write, duplicates, marks: changed };
  const isLeftOut = new Set(duplicates);
  const drafts = write.drafts.filter((_, i) => !isLeftOut.has(i));
  const timesUs = write.timesUs?.filter((_, i) => !isLeftOut.has(i)) ?? null;
  return { write: { ...write, drafts, timesUs }, duplicates, marks: changed };
}

class ChangedMarks {
  readonly #known: KnownMarks;
  // Each kind is in another part of the table, so they are stored one after the other.
  readonly #spans = new Map<string, string>();
  readonly #responses = new Map<string, string>();

  constructor(known: KnownMarks) {
    this.#known = known;
  }

  changed(): Mark[] {
    return [...this.#spans, ...this.#responses];
  }

  /** Whether the report may be of a call that is known. */
  isConnected({ span, outerSpan, response }: CallIds): boolean {
    return (
      (span !== null && this.#known.get(span) !== undefined) ||
      (response !== null && this.#known.get(response) !== undefined) ||
      (outerSpan !== null && this.#spanMark(outerSpan).isCall)
    );
  }

  /**
   * Remembers a report, and returns how many calls more there are with it: one, less one for each report that turns out to be of the
   * same call as one of its children. The sum does not depend on the order of the reports. It is negative if the report shows that two
   * stored calls are one.
   */
  add(report: CallIds): number {
    const { span, outerSpan, response } = report;
    const own = span === null ? null : this.#spanMark(span);
    const isOfKnownResponse = response !== null && this.#known.get(response) !== undefined;
    let added = isOfKnownResponse || own?.isCall ? 0 : 1;
    if (response !== null && !isOfKnownResponse) {
      this.#known.set(response, '');
      this.#responses.set(response, '');
    }
    if (span !== null && own !== null && !own.isCall) {
      own.setCall(report);
      if (own.reportsCallOfChild) added -= 1;
      this.#remember(span, own);
    }
    if (outerSpan === null) return added;
    const outer = this.#spanMark(outerSpan);
    const didReport = outer.reportsCallOfChild;
    if (!outer.addChild(report)) return added;
    this.#remember(outerSpan, outer);
    return outer.reportsCallOfChild && !didReport ? added - 1 : added;
  }

  #spanMark(mark: string): SpanMark {
    return new SpanMark(this.#known.get(mark));
  }

  #remember(mark: string, state: SpanMark): void {
    const text = state.toString();
    this.#known.set(mark, text);
    this.#spans.set(mark, text);
  }
}
