import type { DatabaseSync } from 'node:sqlite';
import type { Calendar } from '../../core/calendar.ts';
import type { DimensionField } from '../../core/dimensions.ts';
import { encodeMeasures } from '../../core/measures.ts';
import { matches } from '../../core/query.ts';
import type { Tally, TallyQuery } from '../../core/query.ts';
import type { QueryPlan } from '../../core/query-plan.ts';
import { limits } from '../../limits.ts';
import { prepareArrays } from './counted-traces.ts';
import { filterSql } from './filter-sql.ts';
import { packPart } from './packed-tally.ts';
import type { PackedTally } from './packed-tally.ts';
import { rollupTables } from './rollup-values.ts';
import { inTile, tailRollups } from './tally-reader.ts';
import type { RollupPlan, TallyReader } from './tally-reader.ts';
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
    `select name, calls, is_error, sums from temp.${table} where rowid > ? order by rowid limit ${limits.groupChunkRows}`,
  );
  let lastRow = 0;
  // The last name of a chunk may go on in the next one.
  let unfinished: PackedTally[] = [];
  return {
    next() {
      for (;;) {
        const rows = read.all(lastRow) as unknown as SumsRow[];
        lastRow += rows.length;
        const tallies = grouped(rows, unfinished);
        unfinished = rows.length === 0 ? [] : tallies.splice(-1);
        if (rows.length === 0 || tallies.length > 0) return tallies;
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
  const rows: SumsRow[] = [];
  let names = 0;
  for (const row of read.iterate(...values) as unknown as Iterable<SumsRow>) {
    if (names === 0 || row[0] !== rows.at(-1)?.[0]) names += 1;
    if (names > namesMax) break;
    rows.push(row);
  }
  db.exec('delete from temp.tail');
  return grouped(rows, []);
}

type SumsRow = readonly [name: string | null, calls: number, isError: number, sums: Uint8Array];

/** Puts rows with the same name together; they are next to each other. */
function grouped(rows: readonly SumsRow[], before: readonly PackedTally[]): PackedTally[] {
  const tallies = [...before];
  for (const [name, calls, isError, sums] of rows) {
    const part = packPart(calls, isError, sums);
    const last = tallies.at(-1);
    if (last && last.group[0] === name) last.parts = Buffer.concat([last.parts, part]);
    else tallies.push({ group: [name], parts: part });
  }
  return tallies;
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
    select g.${field} as name, r.calls, g.is_error, r.sums from ${rollupTables()} where ${inTile}${text}`;
  const tileValues = plan.tiles.flatMap(({ grain, fromBucket, toBucket }): (string | number)[] => [
    team.teamNo,
    team.marks.generation,
    plan.set.number,
    grain,
    fromBucket,
    toBucket,
    ...values,
  ]);
  const parts = [
    'select name, calls, is_error, sums from temp.tail',
    ...plan.tiles.map(() => ofTile),
  ].join(' union all ');
  const sql = `
    select name, calls, is_error, sums from (
      select *, sum(calls) over (partition by name) as total from (${parts}))
    order by total desc, name`;
  return { sql, values: tileValues };
}

/** What the connection needs for lists. */
export function prepareGroupLists(db: DatabaseSync): void {
  db.exec('create temp table tail (name text, calls integer, is_error integer, sums blob)');
}

/** The groups of the traces that are not rolled up yet. */
function fillTail(
  db: DatabaseSync,
  reader: TallyReader,
  team: TeamSnapshot,
  { query, plan, field }: ListQuestion,
  calendar: Calendar,
): void {
  const insert = db.prepare(
    'insert into temp.tail (name, calls, is_error, sums) values (?, ?, ?, ?)',
  );
  const tail = reader.tail(team, plan);
  for (const { group, measures } of tailRollups(tail, plan, query, calendar)) {
    if (!matches(query.filter, group)) continue;
    const isError = group.status === 'error' ? 1 : 0;
    insert.run(group[field] ?? null, measures.calls, isError, encodeMeasures(measures));
  }
}
