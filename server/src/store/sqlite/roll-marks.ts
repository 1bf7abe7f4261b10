import type { DatabaseSync } from 'node:sqlite';
import { firstGeneration } from '../team-marks.ts';
import { prepareArrays } from './array-statement.ts';
import { rowIdOf } from './row-id.ts';

/** How far a generation of rollups is complete, and how it is recognised that the traces up to there are still the same. */
export interface RollMark {
  generation: number;
  timeZone: string;
  /** Of the request by which it was built. */
  rebuildNo: number;
  isActive: boolean;
  seq: number;
  traceId: Uint8Array | null;
  changeNo: number;
  changeToken: bigint | null;
}

/** What the database says about a team. */
export interface TeamTruth {
  teamNo: number;
  timeZone: string;
  rebuildNo: number;
  firstSeq: number;
  /** `firstSeq` - 1 if there are no traces. */
  lastSeq: number;
  firstChangeNo: number;
  lastChangeNo: number;
}

export const teamTruthSql = `
  select t.no, t.time_zone, t.rebuild_no, coalesce(c.first_seq, 1), coalesce(c.last_seq, 0), t.first_change_no, t.last_change_no
  from teams t left join team_counters c on c.team_no = t.no`;

export function teamTruthFrom(row: readonly unknown[]): TeamTruth {
  const [teamNo, timeZone, rebuildNo, firstSeq, lastSeq, firstChangeNo, lastChangeNo] =
    row as unknown as [number, string, number, number, number, number, number];
  return { teamNo, timeZone, rebuildNo, firstSeq, lastSeq, firstChangeNo, lastChangeNo };
}

const markColumns =
  'generation, time_zone, rebuild_no, is_active, seq, trace_id, change_no, change_token';

/** The active mark comes first. Reads only the rollup file. */
export function prepareMarks(db: DatabaseSync): (teamNo: number) => RollMark[] {
  const read = db.prepare(
    `select ${markColumns} from roll_marks where team_no = ? order by is_active desc, generation`,
  );
  read.setReadBigInts(true);
  return (teamNo) =>
    read.all(teamNo).map((row) => ({
      generation: Number(row['generation']),
      timeZone: row['time_zone'] as string,
      rebuildNo: Number(row['rebuild_no']),
      isActive: row['is_active'] === 1n,
      seq: Number(row['seq']),
      traceId: row['trace_id'] as Uint8Array | null,
      changeNo: Number(row['change_no']),
      changeToken: row['change_token'] as bigint | null,
    }));
}

/** What a mark says about the trace and the change that it ends with. */
export function prepareMarkChecks(truth: DatabaseSync) {
  const readId = prepareArrays(truth, `select id from traces where key = ${rowIdOf}`);
  const readToken = truth.prepare(`select token from trace_changes where key = ${rowIdOf}`);
  readToken.setReadBigInts(true);
  const traceId = (teamNo: number, seq: number): Uint8Array | null =>
    (readId.all(teamNo, seq)[0]?.[0] as unknown as Uint8Array | undefined) ?? null;
  const changeToken = (teamNo: number, changeNo: number): bigint | null =>
    (readToken.get(teamNo, changeNo)?.['token'] as bigint | undefined) ?? null;

  return {
    traceId,
    changeToken,
    /** False if the database is not the one that was rolled up, such as an older copy: then nothing of the generation can be used. */
    isValid(mark: RollMark, { teamNo, firstSeq, lastSeq, firstChangeNo, lastChangeNo }: TeamTruth) {
      if (mark.seq < firstSeq - 1 || mark.seq > lastSeq) return false;
      if (mark.changeNo < firstChangeNo - 1 || mark.changeNo > lastChangeNo) return false;
      if (mark.seq >= firstSeq) {
        const id = traceId(teamNo, mark.seq);
        if (!id || !mark.traceId || Buffer.compare(id, mark.traceId) !== 0) return false;
      }
      const isChangeKept = mark.changeNo >= firstChangeNo;
      return !isChangeKept || changeToken(teamNo, mark.changeNo) === mark.changeToken;
    },
  };
}

/** A mark before the first trace. */
export function firstMark(
  { timeZone, rebuildNo, firstSeq, lastChangeNo }: TeamTruth,
  changeToken: bigint | null,
  generation = firstGeneration,
): RollMark {
  return {
    generation,
    timeZone,
    rebuildNo,
    isActive: false,
    seq: firstSeq - 1,
    traceId: null,
    changeNo: lastChangeNo,
    changeToken,
  };
}

export function prepareMarkWrites(db: DatabaseSync) {
  const write = db.prepare(`
    insert into roll_marks (team_no, ${markColumns}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict do update set is_active = excluded.is_active, seq = excluded.seq, trace_id = excluded.trace_id,
      change_no = excluded.change_no, change_token = excluded.change_token`);
  const remove = db.prepare('delete from roll_marks where team_no = ? and generation = ?');
  const readNewest = db.prepare(`
    select max(
      coalesce((select max(generation) from roll_marks where team_no = ?1), 0),
      coalesce((select max(generation) from rollups where team_no = ?1), 0)) as generation`);
  return {
    write(teamNo: number, mark: RollMark): void {
      const { generation, timeZone, rebuildNo, isActive, seq, traceId, changeNo, changeToken } =
        mark;
      const flag = isActive ? 1 : 0;
      write.run(teamNo, generation, timeZone, rebuildNo, flag, seq, traceId, changeNo, changeToken);
    },
    remove: (teamNo: number, { generation }: RollMark): void => void remove.run(teamNo, generation),
    /** Rows of an abandoned generation may still exist, so its number is not used again. */
    nextGeneration: (teamNo: number): number =>
      Number(readNewest.get(teamNo)?.['generation'] ?? 0) + 1,
  };
}
