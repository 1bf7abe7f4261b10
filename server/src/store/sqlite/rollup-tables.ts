import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { calendarOf } from '../../core/calendar.ts';
import { dimensionFields, grainNumbers } from '../../core/dimensions.ts';
import type { RollSpeed } from '../../core/dimensions.ts';
import { RollupFold } from '../../core/rollup.ts';
import type { Rollup } from '../../core/rollup.ts';
import type { NarrowTrace } from '../../core/trace-fields.ts';
import { missingRollup } from '../repricer.ts';
import { addedTo, deltasOf } from '../rollup-rows.ts';
import type { RollupDelta, StoredSums } from '../rollup-rows.ts';
import { firstGeneration } from '../team-marks.ts';
import type { TeamMarks } from '../team-marks.ts';
import { openCountedTraces, prepareArrays } from './counted-traces.ts';
import type { RowValues } from './counted-traces.ts';
import { LookupBatch } from './lookup-batch.ts';
import { openLookupTable } from './lookup-table.ts';
import { seqMax } from './row-id.ts';

/** The tables behind the write. The caller runs each method in a transaction of its own. */
export interface RollupTables {
  /** The marks of the active generation, or of the one that is being built. */
  marks(teamNo: number, which?: 'active' | 'building'): TeamMarks | null;
  /** Adds the traces after a mark to the rollups of its generation, and moves the mark. Returns how many were added. */
  roll(teamNo: number, marks: TeamMarks, speed: RollSpeed, rowsMax: number): number;
  /** Adds the next traces to a batch, and stores their lookups. Returns how many were added. */
  gather(batch: RollBatch, rowsMax: number): number;
  /** Stores the lookups of a batch: readers ignore those after the mark, and storing them again does nothing. */
  storeLookups(batch: RollBatch): void;
  /** Adds a batch to the rollups, stores its lookups and moves the mark. The mark must be where the batch begins. */
  store(batch: RollBatch): void;
  /** Adds differences to rollups that exist. */
  adjust(
    teamNo: number,
    generation: number,
    speed: RollSpeed,
    differences: readonly Rollup[],
  ): void;
}

/** Consecutive traces after a mark that are added to the rollups together. */
export class RollBatch {
  readonly teamNo: number;
  readonly marks: TeamMarks;
  readonly speed: RollSpeed;
  readonly fold: RollupFold;
  /** Those that are not stored yet; null if the speed has none. */
  readonly lookups: LookupBatch | null;
  toSeq: number;
  rows = 0;
  /** The end of the file was reached. Whatever follows can wait. */
  isComplete = false;

  constructor(teamNo: number, marks: TeamMarks, speed: RollSpeed) {
    this.teamNo = teamNo;
    this.marks = marks;
    this.speed = speed;
    this.fold = new RollupFold(speed, calendarOf(marks.timeZone));
    this.lookups = speed === 'wide' ? new LookupBatch() : null;
    this.toSeq = marks.rolledSeq[speed];
  }

  /** How many sums and lookups it holds. */
  get size(): number {
    return this.fold.size + (this.lookups?.size ?? 0);
  }

  add(trace: NarrowTrace, createdAtUs: number, seq: number): void {
    this.fold.addNew(trace, createdAtUs);
    this.lookups?.add(trace, seq);
    this.toSeq = seq;
    this.rows += 1;
  }
}

export const insertFirstMarks = `
  insert into team_marks (team_no, generation, time_zone, is_active, hot_seq, wide_seq)
  select no, ${firstGeneration}, ?2, 1, 0, 0 from teams where id = ?1`;

export function openRollupTables(db: DatabaseSync): RollupTables {
  const traces = openCountedTraces(db);
  const readMarks = db.prepare(
    'select generation, time_zone, hot_seq, wide_seq from team_marks where team_no = ? and is_active = ?',
  );
  const setMark = {
    hot: db.prepare('update team_marks set hot_seq = ? where team_no = ? and generation = ?'),
    wide: db.prepare('update team_marks set wide_seq = ? where team_no = ? and generation = ?'),
  };
  const readSums = prepareArrays(
    db,
    `select calls, sums, latencies from rollup_rows
     where team_no = ? and generation = ? and set_no = ? and grain = ? and bucket = ? and group_hash = ?`,
  );
  const writeSums = db.prepare(`
    insert into rollup_rows (team_no, generation, set_no, grain, bucket, group_hash, calls, sums, latencies)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict do update set calls = excluded.calls, sums = excluded.sums, latencies = excluded.latencies`);
  const insertGroup = db.prepare(`
    insert or replace into rollup_groups (team_no, group_hash, set_no, is_error, ${dimensionFields.join(', ')})
    values (?, ?, ?, ?, ${dimensionFields.map(() => '?').join(', ')})`);
  const noteChange = {
    hot: db.prepare(noteChangeOf('hot')),
    wide: db.prepare(noteChangeOf('wide')),
  };
  const lookupTable = openLookupTable(db);

  /**
   * The sums over all time come first. They are as old as their group, so if a group has none, it is new and no other sums of it have
   * to be looked for.
   */
  function addAll(teamNo: number, generation: number, deltas: readonly RollupDelta[]): void {
    const newGroups = new Set<Uint8Array>();
    for (const delta of deltas) {
      const { set, grain, bucket, hash, group } = delta;
      const stored = newGroups.has(hash)
        ? undefined
        : storedSums(readSums.all(teamNo, generation, set, grain, bucket, hash)[0]);
      const { calls, sums, latencies } = addedTo(stored, delta);
      writeSums.run(teamNo, generation, set, grain, bucket, hash, calls, sums, latencies);
      if (stored || grain !== grainNumbers.all) continue;
      newGroups.add(hash);
      const values = dimensionFields.map((field): SQLInputValue => group[field] ?? null);
      insertGroup.run(teamNo, hash, set, group.status === 'error' ? 1 : 0, ...values);
    }
  }

  /** Anything that changes rollups must do this. */
  function noteChanges(
    teamNo: number,
    generation: number,
    speed: RollSpeed,
    changed: readonly Rollup[],
  ): void {
    const days = changed.filter(({ grain }) => grain === grainNumbers.day);
    for (const day of new Set(days.map(({ bucket }) => bucket))) {
      noteChange[speed].run(teamNo, generation, day);
    }
  }

  const tables: RollupTables = {
    marks(teamNo, which = 'active') {
      const row = readMarks.get(teamNo, which === 'active' ? 1 : 0);
      return row ? marksFromRow(row) : null;
    },
    roll(teamNo, marks, speed, rowsMax) {
      const batch = new RollBatch(teamNo, marks, speed);
      const rows = tables.gather(batch, rowsMax);
      if (rows > 0) tables.store(batch);
      return rows;
    },
    gather(batch, rowsMax) {
      const after = { afterSeq: batch.toSeq, toSeq: seqMax };
      const rows = traces.each(batch.teamNo, after, rowsMax, (trace, seq) =>
        batch.add(trace, trace.createdAtUs, seq),
      );
      tables.storeLookups(batch);
      return rows;
    },
    storeLookups({ teamNo, lookups }) {
      if (lookups) lookupTable.add(teamNo, lookups.take());
    },
    store(batch) {
      const { teamNo, marks, speed, fold, toSeq } = batch;
      const { generation } = marks;
      tables.storeLookups(batch);
      const deltas = deltasOf(fold.rollups());
      addAll(teamNo, generation, deltas);
      noteChanges(teamNo, generation, speed, deltas);
      setMark[speed].run(toSeq, teamNo, generation);
    },
    adjust(teamNo, generation, speed, differences) {
      for (const delta of deltasOf(differences)) {
        const { set, grain, bucket, hash } = delta;
        const key = [teamNo, generation, set, grain, bucket, hash];
        const stored = storedSums(readSums.all(...key)[0]) ?? fail(missingRollup());
        const { calls, sums, latencies } = addedTo(stored, delta);
        writeSums.run(...key, calls, sums, latencies);
      }
      noteChanges(teamNo, generation, speed, differences);
    },
  };
  return tables;
}

function fail(error: Error): never {
  throw error;
}

function noteChangeOf(speed: RollSpeed): string {
  const [hot, wide] = speed === 'hot' ? [1, 0] : [0, 1];
  return `
    insert into rollup_days (team_no, generation, day, hot_changes, wide_changes)
    values (?, ?, ?, ${hot}, ${wide})
    on conflict do update set ${speed}_changes = ${speed}_changes + 1`;
}

export function marksFromRow(row: Readonly<Record<string, unknown>>): TeamMarks {
  return {
    generation: row['generation'] as number,
    timeZone: row['time_zone'] as string,
    rolledSeq: { hot: row['hot_seq'] as number, wide: row['wide_seq'] as number },
  };
}

function storedSums(row: RowValues | undefined): StoredSums | undefined {
  if (!row) return undefined;
  const [calls, sums, latencies] = row as unknown as [number, Uint8Array, Uint8Array];
  return { calls, sums, latencies };
}
