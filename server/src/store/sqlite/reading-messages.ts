import type { SearchCriteria, Tally, TallyQuery } from '../../core/query.ts';
import type { RankOrder, Report } from '../../core/report.ts';
import type { ErrorCode } from '../../errors.ts';
import type { FoundPlaces, FoundSeqs, OrderedSearch, SearchBounds } from '../trace-search.ts';

/** Messages between the main thread and the reading thread. */
export interface ReadingData {
  path: string;
}

export type ReadingQuestion =
  /** All tallies of a query, or the first `rowsMax`. */
  | { kind: 'gather'; teamId: string; query: TallyQuery; rowsMax: number | null }
  /** Gathers all tallies of a query under this number. The reply is empty. */
  | { kind: 'open'; list: number; teamId: string; query: TallyQuery }
  /** The next tallies of a list; none at its end. */
  | { kind: 'next'; list: number }
  | { kind: 'close'; list: number };

/** A question about single traces. */
export type SearchQuestion =
  | { kind: 'search'; teamId: string; criteria: SearchCriteria; bounds: SearchBounds }
  | { kind: 'ordered'; teamId: string; search: OrderedSearch };

/** A question about the first groups in some order. */
export interface RankQuestion {
  kind: 'rank';
  teamId: string;
  query: TallyQuery;
  order: RankOrder;
  groupsMax: number;
}

export interface ToReading {
  ticket: number;
  question: ReadingQuestion | SearchQuestion | RankQuestion;
}

export type FromReading =
  | { kind: 'tallies'; ticket: number; tallies: readonly Tally[] }
  | { kind: 'found'; ticket: number; found: FoundSeqs | FoundPlaces }
  | { kind: 'ranked'; ticket: number; report: Report | null }
  | { kind: 'failed'; ticket: number; code: ErrorCode; reason: string };
