import type { RollFailure, RollReport } from '../store.ts';

/** Messages between the main thread and the roller's thread. */
export interface RollerData {
  path: string;
  /** A tail of so many traces is rolled up at once. */
  rowsMin: number;
  /** Whether anybody asked for reports. */
  isReporting: boolean;
}

export type FromRoller =
  | { kind: 'rolled'; report: RollReport }
  | { kind: 'rollFailed'; failure: RollFailure }
  | { kind: 'stopped' };
