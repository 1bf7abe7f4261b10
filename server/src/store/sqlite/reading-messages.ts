import type { Tally, TallyQuery } from '../../core/query.ts';
import type { ErrorCode } from '../../errors.ts';
import type { PackedTally } from './packed-tally.ts';

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

export interface ToReading {
  ticket: number;
  question: ReadingQuestion;
}

export type FromReading =
  | { kind: 'tallies'; ticket: number; tallies: readonly (Tally | PackedTally)[] }
  | { kind: 'failed'; ticket: number; code: ErrorCode; reason: string };
