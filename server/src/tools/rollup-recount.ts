import { DatabaseSync } from 'node:sqlite';
import type { Calendar } from '../core/calendar.ts';
import { calendarOf } from '../core/calendar.ts';
import { formatDay, formatTimestamp } from '../core/clock.ts';
import { grainNumbers } from '../core/dimensions.ts';
import type { RollSpeed } from '../core/dimensions.ts';
import type { Measures } from '../core/measures.ts';
import { decodeMeasures } from '../core/measures-sum.ts';
import { RollupFold, groupHash } from '../core/rollup.ts';
import type { CountedTrace, Group, Rollup, RollupId } from '../core/rollup.ts';
import { OperatorError, messageOf } from '../errors.ts';
import { limits } from '../limits.ts';
import type { AuditedRollup } from '../store/audit.ts';
import { addedTo, deltasOf } from '../store/rollup-rows.ts';
import type { StoredSums } from '../store/rollup-rows.ts';
import type { TeamMarks } from '../store/team-marks.ts';
import type { FindingList } from './finding-list.ts';

const speeds: readonly RollSpeed[] = ['hot', 'wide'];

/**
 * Adds a team's traces up again and compares the result with the stored rollups. A team may have millions of groups, so the sums are
 * kept in a temporary file of SQLite, which is removed when it is closed, even if the process is killed.
 */
export class RollupRecount implements Disposable {
  readonly #marks: TeamMarks;
  readonly #calendar: Calendar;
  readonly #db = new DatabaseSync('');
  readonly #statements;
  readonly #folds: Record<RollSpeed, RollupFold>;
  #unsavedRows = 0;

  constructor(marks: TeamMarks) {
    this.#marks = marks;
    this.#calendar = calendarOf(marks.timeZone);
    this.#folds = { hot: this.#newFold('hot'), wide: this.#newFold('wide') };
    this.#statements = prepare(this.#db);
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }

  #newFold(speed: RollSpeed): RollupFold {
    return new RollupFold(speed, this.#calendar);
  }

  /** Adds a trace to the sums that should contain it. */
  add(trace: CountedTrace & { seq: number }): void {
    for (const speed of speeds) {
      if (trace.seq <= this.#marks.rolledSeq[speed]) this.#folds[speed].add(trace);
    }
    this.#unsavedRows += 1;
    if (this.#unsavedRows === limits.recountRowsMax) this.#save();
  }

  #save(): void {
    const { find, put, putGroup } = this.#statements;
    try {
      this.#db.exec('begin');
      for (const speed of speeds) {
        for (const delta of deltasOf(this.#folds[speed].rollups())) {
          const { set, grain, bucket, hash, group } = delta;
          const row = addedTo(find.get(set, grain, bucket, hash) as StoredSums | undefined, delta);
          put.run(set, grain, bucket, hash, row.calls, row.sums, row.latencies);
          putGroup.run(hash, JSON.stringify(group));
        }
        this.#folds[speed] = this.#newFold(speed);
      }
      this.#db.exec('commit');
    } catch (error) {
      throw new OperatorError(`Cannot write a temporary file: ${messageOf(error)}.`, {
        cause: error,
      });
    }
    this.#unsavedRows = 0;
  }

  /** Compares every stored rollup with the recounted one, and finds those that are missing. */
  async compare(
    stored: AsyncIterable<readonly AuditedRollup[]>,
    findings: FindingList,
  ): Promise<void> {
    this.#save();
    // One transaction is several times as fast as one per row. It is never committed.
    this.#db.exec('begin');
    for await (const chunk of stored) for (const row of chunk) this.#compareRow(row, findings);
    for (const row of this.#statements.rest.iterate()) {
      const { set, grain, bucket, group } = row as unknown as RestRow;
      const name = nameOf({ set, grain, bucket, group: JSON.parse(group) as Group });
      findings.add(`rollup ${name}: missing`);
    }
  }

  #compareRow(row: AuditedRollup, findings: FindingList): void {
    const { set, grain, bucket, hash, group } = row;
    // What is left in the end is missing from the store.
    const recounted = this.#statements.take.get(set, grain, bucket, hash) as StoredSums | undefined;
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
    if (isSame(recounted, row)) return;
    for (const difference of differencesOf(row, recounted, group)) {
      findings.add(`rollup ${name}: ${difference}`);
    }
  }
}

interface RestRow extends Omit<RollupId, 'group'> {
  group: string;
}

function prepare(db: DatabaseSync) {
  // Nothing survives a crash, so nothing has to be synced or undone.
  db.exec('pragma journal_mode = off; pragma synchronous = off');
  db.exec(`create table rollups (set_no, grain, bucket, hash, calls, sums, latencies,
    primary key (set_no, grain, bucket, hash)) without rowid`);
  db.exec('create table groups (hash primary key, "group") without rowid');
  const ofKey = 'where set_no = ? and grain = ? and bucket = ? and hash = ?';
  return {
    find: db.prepare(`select calls, sums, latencies from rollups ${ofKey}`),
    put: db.prepare('insert or replace into rollups values (?, ?, ?, ?, ?, ?, ?)'),
    putGroup: db.prepare('insert or ignore into groups values (?, ?)'),
    take: db.prepare(`delete from rollups ${ofKey} returning calls, sums, latencies`),
    rest: db.prepare(
      'select set_no as "set", grain, bucket, "group" from rollups join groups using (hash)',
    ),
  };
}

/** For people: the time and every value of the group. */
function nameOf({ grain, bucket, group }: Omit<Rollup, 'measures'>): string {
  const values = Object.entries(group).map(([field, value]) => `${field}=${JSON.stringify(value)}`);
  return `${bucketName(grain, bucket)} ${values.join(' ')}`;
}

function bucketName(grain: number, bucket: number): string {
  if (grain === grainNumbers.all) return 'all time';
  if (grain === grainNumbers.hour) return `hour ${formatTimestamp(bucket * 1_000_000)}`;
  return `${grain === grainNumbers.week ? 'week of' : 'day'} ${formatDay(bucket)}`;
}

function isSame(a: StoredSums, b: StoredSums): boolean {
  return (
    a.calls === b.calls &&
    Buffer.compare(a.sums, b.sums) === 0 &&
    Buffer.compare(a.latencies, b.latencies) === 0
  );
}

function differencesOf(stored: StoredSums, recounted: StoredSums, { status }: Group): string[] {
  const isError = status === 'error';
  let found: Measures;
  try {
    found = decodeMeasures({ ...stored, isError });
  } catch (error) {
    return [`its sums cannot be decoded: ${messageOf(error)}`];
  }
  const right = decodeMeasures({ ...recounted, isError });
  const { latencies: foundLatencies, ...foundSums } = found;
  const { latencies: rightLatencies, ...rightSums } = right;
  const names = Object.keys(rightSums) as Exclude<keyof typeof rightSums, 'percentiles'>[];
  const differences = names
    .filter((name) => foundSums[name] !== rightSums[name])
    .map((name) => `${name} is ${foundSums[name]}, but the traces add up to ${rightSums[name]}`);
  const isSameHistogram =
    foundLatencies.size === rightLatencies.size &&
    [...rightLatencies].every(([bucket, count]) => foundLatencies.get(bucket) === count);
  if (!isSameHistogram) differences.push('its latency histogram differs from the traces');
  return differences.length > 0 ? differences : ['its stored bytes differ from the recounted ones'];
}
