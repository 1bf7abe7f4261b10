export type SentColumn = readonly [name: string, type: string];

/** An insert of rows that are sent as one array for each column. */
export interface ColumnsInsert {
  table: string;
  columns: readonly string[];
  sent: readonly SentColumn[];
  /** The number of the first array among the parameters. The first parameter is the team. */
  firstArray: number;
  /** The values of the columns, in which `of` refers to a sent one. */
  values(of: (name: string) => string): string[];
}

/** A plain `select from unnest` would run on the coordinator; joined with the team's counter it runs on the team's shard. */
export function insertOfTeam({ table, columns, sent, firstArray, values }: ColumnsInsert): string {
  const arrays = sent.map(([, type], i) => `$${firstArray + i}::${type}`);
  return `
    insert into ${table} (team_id, ${columns.join(', ')})
    select c.team_id, ${values((name) => `u.${name}`).join(', ')}
    from team_counters c, unnest(${arrays.join(', ')}) as u(${sent.map(([name]) => name).join(', ')}) where c.team_id = $1`;
}

/** The same for a known number of rows. The parameters are the same too. */
function insertFewOfTeam(
  { table, columns, sent, firstArray, values }: ColumnsInsert,
  count: number,
): string {
  const arrays = new Map(sent.map(([name, type], i) => [name, `($${firstArray + i}::${type})`]));
  const rows = Array.from({ length: count }, (_, i) => {
    const row = values((name) => `${arrays.get(name)}[${i + 1}]`);
    return `($1, ${row.join(', ')})`;
  });
  return `
    insert into ${table} (team_id, ${columns.join(', ')}) values ${rows.join(', ')}`;
}

/**
 * Citus plans an `insert … select` once for each shard of the cluster, and `values` only once. With more rows than this, the latter takes
 * longer: it grows with the number of rows.
 */
const fewRowsMax = 4;

/** For 1, 2, 3 … rows. */
export function insertsOfFew(insert: ColumnsInsert): readonly string[] {
  return Array.from({ length: fewRowsMax }, (_, i) => insertFewOfTeam(insert, i + 1));
}
