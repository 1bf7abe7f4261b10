/**
 * How far the traces of a team are rolled up. The rollups of a generation contain exactly the traces up to its mark; a read adds the
 * traces after them. A second generation is built while the active one answers, when the time zone changes or rollups are repaired.
 */
export interface TeamMarks {
  generation: number;
  timeZone: string;
  /** The last trace that the rollups contain. */
  seq: number;
}

export const defaultTimeZone = 'UTC';

/** The generation of a new team. */
export const firstGeneration = 1;
