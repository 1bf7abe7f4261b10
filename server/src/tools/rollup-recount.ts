import { DatabaseSync } from 'node:sqlite';
import { calendarOf } from '../core/calendar.ts';
import { formatDay, formatTimestamp } from '../core/clock.ts';
import { dimensionSets, grainNumbers } from '../core/dimensions.ts';
import { LatencyCounts } from '../core/latency-counts.ts';
import type { Measures } from '../core/measures.ts';
import { RollupFold, groupHash } from '../core/rollup.ts';
import type { CountedTrace, RollupId } from '../core/rollup.ts';
import { OperatorError, messageOf } from '../errors.ts';
import { migrationsFolder } from '../installation.ts';
import { limits } from '../limits.ts';
import { addedColumns } from '../query/sums-sql.ts';
import { measuresOf } from '../query/sums.ts';
import type { AuditedRollup, RollupSums } from '../store/audit.ts';
import { readMigrations } from '../store/migrations.ts';
import { openRollupTables } from '../store/sqlite/rollup-tables.ts';
import { groupColumns, groupOfColumns } from '../store/sqlite/rollup-values.ts';
import type { GroupColumns } from '../store/sqlite/rollup-values.ts';
import type { TeamMarks } from '../store/team-marks.ts';
import type { FindingList } from './finding-list.ts';

/**
 * Adds a team's traces up again, with the roller's own code and into a temporary rollup file, and compares the result with the stored
 * rollups. SQLite keeps what is too much for the memory on disk, and removes it even if the process is killed.
 */
export class RollupRecount implements Disposable {
  readonly #rolledSeq: number;
  readonly #newFold: () => RollupFold;
  readonly #db = new DatabaseSync('');
  readonly #tables;
  readonly #take;
  readonly #rest;
  #fold: RollupFold;
  #rows = 0;

  constructor({ timeZone, seq }: TeamMarks) {
    this.#rolledSeq = seq;
    const calendar = calendarOf(timeZone);
    this.#newFold = () => new RollupFold(dimensionSets, calendar);
    this.#fold = this.#newFold();
    const db = this.#db;
    // Nothing survives a crash, so nothing has to be synced or undone, and one transaction that is never committed is enough.
    db.exec('pragma journal_mode = off; pragma synchronous = off');
    for (const { sql } of readMigrations(migrationsFolder('sqlite-rollups'))) db.exec(sql);
    db.exec('begin');
    this.#tables = openRollupTables(db);
    this.#take = db.prepare(`
      delete from rollups where (team_no, generation, set_no, grain, bucket, group_no) = (
        ${team}, ${generation}, ?1, ?2, ?3, (select no from rollup_groups where team_no = ${team} and set_no = ?1 and hash = ?4))
      returning ${addedColumns.join(', ')}, latencies`);
    this.#take.setReturnArrays(true);
    this.#take.setReadBigInts(true);
    this.#rest = db.prepare(`
      select r.set_no, r.grain, r.bucket, ${groupColumns} from rollups r join rollup_groups g on g.no = r.group_no`);
    this.#rest.setReturnArrays(true);
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }

  /** Adds a trace to the sums that should contain it. */
  add(trace: CountedTrace & { seq: number }): void {
    if (trace.seq > this.#rolledSeq) return;
    this.#fold.add(trace);
    this.#rows += 1;
    const isFull =
      this.#rows >= limits.recountRowsMax || this.#fold.size >= limits.recountRollupsMax;
    if (isFull) this.#save();
  }

  #save(): void {
    try {
      this.#tables.add(team, generation, this.#fold.rollups());
    } catch (error) {
      throw new OperatorError(`Cannot write a temporary file: ${messageOf(error)}.`, {
        cause: error,
      });
    }
    this.#fold = this.#newFold();
    this.#rows = 0;
  }

  /** Compares every stored rollup with the recounted one, and finds those that are missing. */
  async compare(
    stored: AsyncIterable<readonly AuditedRollup[]>,
    findings: FindingList,
  ): Promise<void> {
    this.#save();
    for await (const chunk of stored) {
      for (const row of chunk) {
        // What is left in the end is missing from the store.
        compareRow(row, this.#recounted(row), findings);
      }
    }
    for (const row of this.#rest.iterate() as unknown as Iterable<RestRow>) {
      const [set, grain, bucket, ...columns] = row;
      const group = groupOfColumns(set, columns);
      findings.add(`rollup ${nameOf({ set, grain, bucket, group })}: missing`);
    }
  }

  /** Forgets it too. */
  #recounted({ set, grain, bucket, hash }: AuditedRollup): RollupSums | null {
    const row = this.#take.get(set, grain, bucket, hash) as unknown as unknown[] | undefined;
    return row ? { sums: row.slice(0, -1) as bigint[], latencies: row.at(-1) as Uint8Array } : null;
  }
}

type RestRow = [set: number, grain: number, bucket: number, ...columns: GroupColumns];

/** There is only one of each. */
const team = 1;
const generation = 1;

function compareRow(row: AuditedRollup, recounted: RollupSums | null, findings: FindingList): void {
  const { set, grain, bucket, hash, group } = row;
  if (group === null || Buffer.compare(groupHash({ set, group }), hash) !== 0) {
    const how = group === null ? 'missing' : 'different';
    const id = Buffer.from(hash).toString('hex');
    findings.add(`rollup of the group ${id}: the values of the group are ${how}`);
    return;
  }
  const name = nameOf({ set, grain, bucket, group });
  if (!recounted) {
    findings.add(`rollup ${name}: it has no traces`);
    return;
  }
  for (const difference of differencesOf(row, recounted)) {
    findings.add(`rollup ${name}: ${difference}`);
  }
}

/** For people: the time and every value of the group. */
function nameOf({ grain, bucket, group }: RollupId): string {
  const values = Object.entries(group).map(([field, value]) => `${field}=${JSON.stringify(value)}`);
  return `${bucketName(grain, bucket)} ${values.join(' ')}`;
}

function bucketName(grain: number, bucket: number): string {
  if (grain === grainNumbers.all) return 'all time';
  if (grain === grainNumbers.hour) return `hour ${formatTimestamp(bucket * 1_000_000)}`;
  if (grain === grainNumbers.month) return `month of ${formatDay(bucket)}`;
  return `${grain === grainNumbers.week ? 'week of' : 'day'} ${formatDay(bucket)}`;
}

function differencesOf(stored: RollupSums, recounted: RollupSums): string[] {
  const found = shownSums(stored);
  const right = shownSums(recounted);
  const differences = Object.entries(right)
    .filter(([name, value]) => found[name as keyof typeof found] !== value)
    .map(
      ([name, value]) =>
        `${name} is ${String(found[name as keyof typeof found])}, but the traces add up to ${String(value)}`,
    );
  if (Buffer.compare(stored.latencies, recounted.latencies) === 0) return differences;
  return [...differences, histogramDifference(stored.latencies)];
}

/** Errors are groups of their own. */
function shownSums({ sums }: RollupSums): Omit<Measures, 'latencies' | 'errors' | 'percentiles'> {
  const { latencies: _, errors: __, ...shown } = measuresOf([0, ...sums]);
  return shown;
}

function histogramDifference(latencies: Uint8Array): string {
  try {
    new LatencyCounts().addEncoded(latencies);
    return 'its latency histogram differs from the traces';
  } catch (error) {
    return `its latency histogram cannot be decoded: ${messageOf(error)}`;
  }
}
