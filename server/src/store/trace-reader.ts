import type { Tally, TallyQuery } from '../core/query.ts';
import type { PayloadName } from '../core/trace-fields.ts';
import type { Trace } from '../core/trace.ts';

export interface PageRequest {
  page: number;
  limit: number;
  omit: ReadonlySet<PayloadName>;
  /** If set, payloads are shortened to this many characters. */
  previewChars?: number | null;
}

export interface TracePage {
  total: number;
  /** The page's traces, newest first: all of them, or as many as fit into one chunk. */
  first: readonly Trace[];
  /** The others in chunks of bounded size, since a page may have half a gigabyte; null if `first` is the whole page. */
  rest: AsyncIterable<readonly Trace[]> | null;
}

export interface TallyList {
  /** By calls descending, then by group, then by time. */
  first: readonly Tally[];
  /** The others in chunks, from the same snapshot; null if `first` is the whole list. It must be closed. */
  rest: (AsyncIterable<readonly Tally[]> & { close(): void }) | null;
}

export interface TraceReader {
  /** A waiting read is not started if `isWanted` returns false. */
  page(teamId: string, request: PageRequest, isWanted?: () => boolean): Promise<TracePage>;
  trace(teamId: string, id: string, isWanted?: () => boolean): Promise<Trace | null>;
  /** Consecutive traces, in the order of their sequence numbers. */
  range(teamId: string, range: { firstSeq: number; count: number }): Promise<readonly Trace[]>;
  /** The zone of the team's days. It changes together with the sums, when they have been rebuilt. */
  timeZone(teamId: string): Promise<string>;
  /**
   * Answers a question about sums, from one snapshot that includes every committed trace: all of the tallies, or the first `rowsMax`.
   */
  tallies(
    teamId: string,
    query: TallyQuery,
    rowsMax?: number | null,
    isWanted?: () => boolean,
  ): Promise<TallyList>;
}
