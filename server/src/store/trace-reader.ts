import type { SearchCriteria, Tally, TallyQuery } from '../core/query.ts';
import type { RankOrder, Report } from '../core/report.ts';
import type { CountedTrace } from '../core/rollup.ts';
import type { PayloadName } from '../core/trace-fields.ts';
import type { Trace } from '../core/trace.ts';
import type { LookupField } from './trace-lookups.ts';

/** How many traces a list shows, and how much of each. */
export interface ListRequest {
  limit: number;
  omit: ReadonlySet<PayloadName>;
  /** If set, payloads are shortened to this many characters. */
  previewChars?: number | null;
}

export interface PageRequest extends ListRequest {
  page: number;
}

export interface SearchRequest extends ListRequest {
  criteria: SearchCriteria;
  /** Only traces before this one; null for all. */
  beforeSeq: number | null;
}

/** Where a trace is in the order in which calls began. */
export interface EventPlace {
  us: number;
  seq: number;
}

/** The traces of one session or run, in the order in which the calls began. */
export interface OrderedRequest extends ListRequest {
  field: LookupField;
  value: string;
  /** Only those after this one; null for all. */
  after: EventPlace | null;
}

export interface TraceChunks {
  /** All of the traces, or as many as fit into one chunk. */
  first: readonly Trace[];
  /** The others in chunks of bounded size, since a page may have half a gigabyte; null if `first` is the whole page. */
  rest: AsyncIterable<readonly Trace[]> | null;
}

/** Newest first. */
export interface TracePage extends TraceChunks {
  total: number;
}

/** Newest first. */
export interface FoundTraces extends TraceChunks {
  /** The oldest trace that was looked at, if there may be more before it; null if everything was searched. */
  next: { seq: number; createdAtUs: number } | null;
}

export interface OrderedTraces extends TraceChunks {
  /** The last trace, if there are more after it. */
  next: EventPlace | null;
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
  /** Searches for a bounded time; `next` says where to continue. */
  search(teamId: string, request: SearchRequest, isWanted?: () => boolean): Promise<FoundTraces>;
  ordered(
    teamId: string,
    request: OrderedRequest,
    isWanted?: () => boolean,
  ): Promise<OrderedTraces>;
  trace(teamId: string, id: string, isWanted?: () => boolean): Promise<Trace | null>;
  /** A trace without its payloads, which may be long. */
  narrow(teamId: string, id: string, isWanted?: () => boolean): Promise<CountedTrace | null>;
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
  /**
   * The first groups of a question, and the sums of the others, from one snapshot. There may be percentiles instead of histograms. Null if
   * ranking all of the tallies is the only way.
   */
  ranking(
    teamId: string,
    query: TallyQuery,
    order: RankOrder,
    groupsMax: number,
    isWanted?: () => boolean,
  ): Promise<Report | null>;
}
