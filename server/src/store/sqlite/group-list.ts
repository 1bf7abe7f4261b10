import type { DatabaseSync } from 'node:sqlite';
import type { Calendar } from '../../core/calendar.ts';
import type { DimensionField } from '../../core/dimensions.ts';
import { encodeMeasures } from '../../core/encoded-measures.ts';
import { MeasuresSum } from '../../core/measures-sum.ts';
import type { CountedMeasures } from '../../core/measures-sum.ts';
import { matches } from '../../core/query.ts';
import type { Tally, TallyQuery } from '../../core/query.ts';
import type { QueryPlan } from '../../core/query-plan.ts';
import { limits } from '../../limits.ts';
import { prepareArrays } from './counted-traces.ts';
import { filterSql } from './filter-sql.ts';
import { packPart } from './packed-tally.ts';
import type { PackedTally } from './packed-tally.ts';
import { inTile, rollupTables } from './rollup-values.ts';
import type { RollupPlan } from './rollup-values.ts';
import { tailRollups } from './tally-reader.ts';
import type { TallyReader } from './tally-reader.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

/** A list of names that may be too long for memory: sorted by SQLite. */
export interface GroupList {
  /** The next tallies; none at the end. */
  next(): (Tally | PackedTally)[];
  close(): void;
}

/** The query and its plan, if its answer is a list of names. */
export interface ListQuestion {
  query: TallyQuery;
  plan: RollupPlan;
  field: DimensionField;
}

/** Null if the answer is not a list of names. */
export function listQuestion(query: TallyQuery, plan: QueryPlan): ListQuestion | null {
  const [field, ...others] = query.groupBy;
  if (plan.kind === 'traces' || query.interval !== null || others.length > 0) return null;
  if (field === undefined || field === 'status') return null;
  return { query, plan, field: field as DimensionField };
}

/**
 * Sorts everything into a temporary table, so that a slow peer does not keep a read transaction open. It must run in the transaction in
 * which the snapshot was read.
 */
export function openGroupList(
  db: DatabaseSync,
  reader: TallyReader,
  team: TeamSnapshot,
  question: ListQuestion,
  calendar: Calendar,
  table: string,
): GroupList {
  const { sql, values } = sortedSums(db, reader, team, question, calendar);
  db.prepare(`create temp table ${table} as ${sql}`).run(...values);
  db.exec('delete from temp.tail');
  const read = prepareArrays(
    db,
    `select ${sumsColumns} from temp.${table} where rowid > ? order by rowid limit ${limits.groupChunkRows}`,
  );
  let lastRow = 0;
  // The last name of a chunk may go on in the next one.
  const names = new NameSums();
  return {
    next() {
      for (;;) {
        const rows = read.all(lastRow) as unknown as SumsRow[];
        lastRow += rows.length;
        for (const row of rows) names.add(row);
        const isEnd = rows.length === 0;
        const tallies = names.take(isEnd);
        if (isEnd || tallies.length > 0) return tallies;
      }
    },
    close: () => db.exec(`drop table if exists temp.${table}`),
  };
}

/** The first names of a list, without a temporary table. */
export function topGroups(
  db: DatabaseSync,
  reader: TallyReader,
  team: TeamSnapshot,
  question: ListQuestion,
  calendar: Calendar,
  namesMax: number,
): PackedTally[] {
  const { sql, values } = sortedSums(db, reader, team, question, calendar);
  const read = db.prepare(sql);
  read.setReturnArrays(true);
  const names = new NameSums();
  for (const row of read.iterate(...values) as unknown as Iterable<SumsRow>) {
    names.add(row);
    if (names.count > namesMax) break;
  }
  db.exec('delete from temp.tail');
  return names.take(true).slice(0, namesMax);
}

type SumsRow = readonly [
  name: string | null,
  calls: number,
  isError: number,
  sums: Uint8Array,
  latencies: Uint8Array | null,
];

const sumsColumns = 'name, calls, is_error, sums, latencies';

/**
 * Adds up the rows of each name, which are next to each other: one sum for each status. A name has a row for each of its environments and
 * providers, so there may be thousands; but most have one, which is not even decoded.
 */
class NameSums {
  readonly #finished: PackedTally[] = [];
  #name: string | null = null;
  /** Of the last name, by status. */
  #sums: (StatusSum | undefined)[] = [];
  /** How many names were begun. */
  count = 0;

  add([name, calls, isError, sums, latencies]: SumsRow): void {
    if (this.count === 0 || name !== this.#name) {
      this.#finish();
      this.#name = name;
      this.count += 1;
    }
    const known = this.#sums[isError];
    const row = { calls, isError: isError === 1, sums, latencies };
    if (!known) {
      this.#sums[isError] = { first: row, sum: null };
      return;
    }
    if (!known.sum) {
      known.sum = new MeasuresSum();
      known.sum.addEncoded(known.first);
    }
    known.sum.addEncoded(row);
  }

  /** The names that are complete. The last one is complete only at the end. */
  take(isEnd: boolean): PackedTally[] {
    if (isEnd) this.#finish();
    return this.#finished.splice(0);
  }

  #finish(): void {
    const parts = this.#sums.flatMap((known) => {
      if (!known) return [];
      const { first, sum } = known;
      if (!sum) return [packPart(first)];
      const { isError } = first;
      return [packPart({ calls: sum.calls, isError, ...encodeMeasures(sum.measures()) })];
    });
    this.#sums = [];
    if (parts.length === 0) return;
    this.#finished.push({ group: [this.#name], startUs: null, parts: Buffer.concat(parts) });
  }
}

interface StatusSum {
  first: CountedMeasures;
  /** Null as long as there is one row. */
  sum: MeasuresSum | null;
}

/**
 * The sums of every name: names by their calls, then by name, with one row for each rollup. SQLite only sorts; sums are added when they
 * are read, since a call from SQLite into JavaScript for every row would take most of the time.
 */
function sortedSums(
  db: DatabaseSync,
  reader: TallyReader,
  team: TeamSnapshot,
  { query, plan, field }: ListQuestion,
  calendar: Calendar,
) {
  fillTail(db, reader, team, { query, plan, field }, calendar);
  const { text, values } = filterSql(query.filter, 'g.');
  const ofTile = `
    select g.${field} as name, r.calls, g.is_error, r.sums, ${query.sumsOnly ? 'null' : 'r.latencies'} as latencies
    from ${rollupTables()} where ${inTile}${text}`;
  const tileValues = plan.tiles.flatMap(({ grain, fromBucket, toBucket }): (string | number)[] => [
    team.teamNo,
    team.marks.generation,
    plan.set.number,
    grain,
    fromBucket,
    toBucket,
    ...values,
  ]);
  const parts = [`select ${sumsColumns} from temp.tail`, ...plan.tiles.map(() => ofTile)].join(
    ' union all ',
  );
  const sql = `
    select ${sumsColumns} from (
      select *, sum(calls) over (partition by name) as total from (${parts}))
    order by total desc, name`;
  return { sql, values: tileValues };
}

/** What the connection needs for lists. */
export function prepareGroupLists(db: DatabaseSync): void {
  db.exec(
    'create temp table tail (name text, calls integer, is_error integer, sums blob, latencies blob)',
  );
}

/** The groups of the traces that are not rolled up yet. */
function fillTail(
  db: DatabaseSync,
  reader: TallyReader,
  team: TeamSnapshot,
  { query, plan, field }: ListQuestion,
  calendar: Calendar,
): void {
  const insert = db.prepare(`insert into temp.tail (${sumsColumns}) values (?, ?, ?, ?, ?)`);
  const tail = reader.tail(team, plan);
  for (const { group, measures } of tailRollups(tail, plan, query, calendar)) {
    if (!matches(query.filter, group)) continue;
    const isError = group.status === 'error' ? 1 : 0;
    const { sums, latencies } = encodeMeasures(measures);
    const kept = query.sumsOnly ? null : latencies;
    insert.run(group[field] ?? null, measures.calls, isError, sums, kept);
  }
}
