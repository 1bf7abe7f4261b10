import type { DatabaseSync } from 'node:sqlite';
import type { Calendar } from '../../core/calendar.ts';
import type { DimensionField } from '../../core/dimensions.ts';
import { encodeMeasures } from '../../core/measures.ts';
import { matches } from '../../core/query.ts';
import type { Tally, TallyQuery } from '../../core/query.ts';
import type { QueryPlan } from '../../core/query-plan.ts';
import { limits } from '../../limits.ts';
import { filterSql } from './filter-sql.ts';
import { packPart } from './packed-tally.ts';
import type { PackedTally } from './packed-tally.ts';
import { rollupTables } from './rollup-values.ts';
import { inTile, tailRollups } from './tally-reader.ts';
import type { RollupPlan, TallyReader } from './tally-reader.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

/** A list of names that may be too long for memory: grouped and sorted by SQLite. */
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
 * Groups everything into a temporary table, so that a slow peer does not keep a read transaction open. It must run in the transaction in
 * which the snapshot was read.
 */
export function openGroupList(
  db: DatabaseSync,
  reader: TallyReader,
  team: TeamSnapshot,
  { query, plan, field }: ListQuestion,
  calendar: Calendar,
  table: string,
  rowsMax: number | null,
): GroupList {
  fillTail(db, reader, team, { query, plan, field }, calendar);
  const { text, values } = filterSql(query.filter, 'g.');
  const ofTile = `
    select g.${field} as name, r.calls, g.is_error, r.sums from ${rollupTables()} where ${inTile}${text}`;
  const tileValues = plan.tiles.flatMap(({ grain, fromBucket, toBucket }): (string | number)[] => [
    ...[team.teamNo, team.marks.generation, plan.set.number, grain, fromBucket, toBucket],
    ...values,
  ]);
  const parts = [
    'select name, calls, is_error, sums from temp.tail',
    ...plan.tiles.map(() => ofTile),
  ];
  db.prepare(
    `create temp table ${table} as
     select name, sum(calls) as calls, gather_sums(calls, is_error, sums) as parts
     from (${parts.join(' union all ')}) group by name order by 2 desc, name limit ${rowsMax ?? -1}`,
  ).run(...tileValues);
  db.exec('delete from temp.tail');
  const read = db.prepare(
    `select name, parts from temp.${table} where rowid > ? order by rowid limit ${limits.groupChunkRows}`,
  );
  let lastRow = 0;
  return {
    next() {
      const rows = read.all(lastRow);
      lastRow += rows.length;
      return rows.map(({ name, parts: packed }) => ({
        group: [name as string | null],
        parts: packed as Uint8Array,
      }));
    },
    close: () => db.exec(`drop table if exists temp.${table}`),
  };
}

/** What the connection needs for lists. */
export function prepareGroupLists(db: DatabaseSync): void {
  db.exec('create temp table tail (name text, calls integer, is_error integer, sums blob)');
  // Node's types do not express that any value can be carried from row to row.
  const aggregate = db.aggregate.bind(db) as unknown as DefineAggregate<Buffer[]>;
  aggregate('gather_sums', {
    start: () => [],
    step(gathered, calls, isError, sums) {
      gathered.push(packPart(calls, isError, sums));
      return gathered;
    },
    result: (gathered) => Buffer.concat(gathered),
  });
}

type DefineAggregate<T> = (
  name: string,
  functions: {
    start(): T;
    step(gathered: T, calls: number, isError: number, sums: Uint8Array): T;
    result(gathered: T): Uint8Array;
  },
) => void;

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
