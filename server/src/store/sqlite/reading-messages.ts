import type { SQLOutputValue } from 'node:sqlite';
import type { Dimension } from '../../core/rollup.ts';
import type { ErrorCode } from '../../errors.ts';

/** Messages between the main thread and the reading thread. */
export interface ReadingData {
  path: string;
}

/** Rows of a list of groups: the name, then `measureColumns`. */
export type GroupRows = readonly (readonly SQLOutputValue[])[];

export type ReadingQuestion =
  /** The first `rowsMax` groups. */
  | { kind: 'top'; teamId: string; dimension: Dimension; rowsMax: number }
  /** Creates a snapshot of all groups under this number. The reply has no rows. */
  | { kind: 'open'; list: number; teamId: string; dimension: Dimension }
  /** The next rows of a list; none at its end. */
  | { kind: 'next'; list: number }
  | { kind: 'close'; list: number };

export interface ToReading {
  ticket: number;
  question: ReadingQuestion;
}

export type FromReading =
  | { kind: 'rows'; ticket: number; rows: GroupRows }
  | { kind: 'failed'; ticket: number; code: ErrorCode; reason: string };
