import { OperatorError } from '../errors.ts';
import type { TeamMarks } from './team-marks.ts';

/** Adds traces to the rollups behind the write. Several processes may call it at once: each trace is added once. */
export interface Roller {
  /** Adds the next traces of a team, at most `rowsMax`, in one transaction. Returns how many. */
  roll(teamId: string, rowsMax: number): Promise<number>;
  /** The marks of the active generation. */
  marks(teamId: string): Promise<TeamMarks>;
  /**
   * Builds all rollups of a team again, in short transactions while the present ones answer, then switches to them. If it is
   * interrupted, the next rebuild continues, or starts over if the time zone is another. If another time zone is built at the same time,
   * the rebuild that started first may fail with `anotherRebuild`.
   */
  rebuild(
    teamId: string,
    timeZone: string,
    onProgress?: (rolled: number, total: number) => void,
  ): Promise<void>;
  /** Removes rollups that a rebuild has replaced and, if it was interrupted, has not removed. */
  removeOldRollups(teamId: string): Promise<void>;
}

export function anotherRebuild(): OperatorError {
  return new OperatorError(
    'Another rebuild of this team is running. Wait until it has ended, then run this again.',
  );
}
