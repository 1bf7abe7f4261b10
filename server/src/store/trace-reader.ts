import type { DayMeasures, DayRange, GroupMeasures } from '../core/analytics.ts';
import type { Measures, labelOf } from '../core/rollup.ts';
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

/** Dimensions whose groups can be listed. */
export type GroupDimension = Exclude<keyof typeof labelOf, 'user'>;

export interface GroupList {
  first: readonly GroupMeasures[];
  /** The others in chunks, from the same snapshot; null if `first` is the whole list. It must be closed. */
  rest: (AsyncIterable<readonly GroupMeasures[]> & { close(): void }) | null;
}

export interface TraceReader {
  /** A waiting read is not started if `isWanted` returns false. */
  page(teamId: string, request: PageRequest, isWanted?: () => boolean): Promise<TracePage>;
  trace(teamId: string, id: string, isWanted?: () => boolean): Promise<Trace | null>;
  /** Consecutive traces, in the order of their sequence numbers. */
  range(teamId: string, range: { firstSeq: number; count: number }): Promise<readonly Trace[]>;
  total(teamId: string): Promise<Measures>;
  /** By calls descending, then by name: all of them, or the first `rowsMax`. */
  groups(teamId: string, dimension: GroupDimension, rowsMax: number | null): Promise<GroupList>;
  /** The days of the range that have calls. */
  days(teamId: string, range: DayRange): Promise<readonly DayMeasures[]>;
}
