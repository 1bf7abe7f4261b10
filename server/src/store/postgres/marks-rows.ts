import { emptyCounter } from '../sequencer.ts';
import type { TeamCounter } from '../sequencer.ts';
import { defaultTimeZone, firstGeneration } from '../team-marks.ts';
import type { TeamMarks } from '../team-marks.ts';
import type { Row } from './connection.ts';

/** The driver returns a bigint as text. Sequence numbers stay far below 2^53. */
export function counterFromRow(row: Row | undefined): TeamCounter {
  if (!row) return emptyCounter;
  return {
    firstSeq: Number(row['first_seq']),
    lastSeq: Number(row['last_seq']),
    lastUs: Number(row['last_created_at_us']),
  };
}

/** A team that does not exist has no traces, in UTC. */
const noMarks = {
  generation: firstGeneration,
  timeZone: defaultTimeZone,
  seq: 0,
  changeNo: 0,
};

export interface ChangeMarks extends TeamMarks {
  /** The last change that the rollups contain. */
  changeNo: number;
}

export function marksFromRow(row: Row | undefined): ChangeMarks {
  if (!row) return noMarks;
  return {
    generation: row['generation'] as number,
    timeZone: row['time_zone'] as string,
    seq: Number(row['seq']),
    changeNo: Number(row['change_no']),
  };
}
