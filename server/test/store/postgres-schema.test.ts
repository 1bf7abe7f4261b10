import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { tablesByTeam, tablesOnEveryNode, teamColumn } from '../../src/store/postgres/tables.ts';
import { usePostgres } from '../support/postgres.ts';

/** What a Citus cluster asks of the tables, read from PostgreSQL's own catalogs after the migrations. */
const postgres = usePostgres();
const byTeam = new Set<string>(tablesByTeam);
const onEveryNode = new Set<string>(tablesOnEveryNode);

/** The tables of the schema. */
const tables = `
  select c.oid, c.relname as name from pg_class c
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')`;

/** Of every unique index: its table, and the columns in their order. An expression has no name. */
const uniqueIndexes = `
  with tables as (${tables})
  select t.name as table, i.indexrelid::regclass::text as name,
    array(select coalesce(a.attname, '') from unnest(i.indkey) with ordinality as k(attnum, at)
      left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum and k.attnum > 0 order by k.at)::text[] as columns
  from tables t join pg_index i on i.indrelid = t.oid where i.indisunique or i.indisexclusion`;

const foreignKeys = `
  with tables as (${tables})
  select t.name as table, f.confrelid::regclass::text as target
  from tables t join pg_constraint f on f.conrelid = t.oid where f.contype = 'f'`;

/** Columns that number themselves, by a sequence of any kind. */
const sequences = `
  with tables as (${tables})
  select t.name as table, a.attname as column from tables t join pg_attribute a on a.attrelid = t.oid
  where a.attnum > 0 and not a.attisdropped and (a.attidentity <> ''
    or exists (select 1 from pg_attrdef d where d.adrelid = t.oid and d.adnum = a.attnum
      and pg_get_expr(d.adbin, d.adrelid) ~ 'nextval'))`;

const triggers = `
  with tables as (${tables})
  select t.name as table from tables t join pg_trigger g on g.tgrelid = t.oid where not g.tgisinternal`;

interface Schema {
  tables: string[];
  /** What a cluster could not hold, as sentences. */
  faults: string[];
}

async function readSchema(client: pg.Client): Promise<Schema> {
  const read = async (text: string) => (await client.query<Record<string, string>>(text)).rows;
  const faults: string[] = [];
  for (const { table = '', name, columns } of await read(uniqueIndexes)) {
    if (byTeam.has(table) && columns?.[0] !== teamColumn)
      faults.push(`${name} is unique over all teams`);
  }
  for (const { table, target = '' } of await read(foreignKeys)) {
    // One from a small table to those of a team would have to look on every node.
    if (!onEveryNode.has(target)) faults.push(`${table} points to ${target}`);
  }
  for (const { table, column } of await read(sequences)) {
    faults.push(`${table}.${column} takes its numbers from one sequence for all`);
  }
  for (const { table } of await read(triggers)) faults.push(`${table} has a trigger`);
  const names = (await read(tables)).map(({ name = '' }) => name);
  for (const name of names) {
    const lists = [byTeam, onEveryNode].filter((list) => list.has(name)).length;
    if (lists !== 1) faults.push(`${name} is in ${lists} lists`);
  }
  return { tables: names.sort(), faults };
}

describe('the schema', () => {
  let client: pg.Client;
  before(async () => {
    const url = await postgres.createDatabase();
    await (await openPostgresStore({ url, clock: { kind: 'system' }, role: 'tool' })).close();
    client = new pg.Client({ connectionString: url });
    await client.connect();
  });
  after(() => client.end());

  test('every table is distributed or a reference table, and no constraint crosses teams', async () => {
    const schema = await readSchema(client);
    assert.deepEqual(schema.faults, []);
    assert.deepEqual(schema.tables, [...tablesByTeam, ...tablesOnEveryNode].sort());
    const { rows } = await client.query<{ table: string }>(uniqueIndexes);
    const keyed = new Set(rows.map(({ table }) => table));
    for (const table of tablesByTeam) assert.ok(keyed.has(table), `${table} has a key`);
  });

  const overTeams = 'one_id is unique over all teams';
  const numbered = 'takes its numbers from one sequence for all';
  const harms = {
    'create unique index one_id on traces (id)': overTeams,
    'create unique index one_id on traces (id, team_id)': overTeams,
    'create unique index one_id on traces ((id::text), team_id)': overTeams,
    'alter table rollup_groups add constraint one_id unique (group_hash)': overTeams,
    'alter table rollups add foreign key (team_id) references team_counters':
      'rollups points to team_counters',
    'alter table api_keys add foreign key (team_id) references team_counters':
      'api_keys points to team_counters',
    'alter table traces add column no bigserial': `traces.no ${numbered}`,
    'alter table teams add column no bigint generated always as identity': `teams.no ${numbered}`,
    'create trigger t before update on traces for each row execute function suppress_redundant_updates_trigger()':
      'traces has a trigger',
    'create table more (team_id uuid primary key)': 'more is in 0 lists',
  };
  for (const [harm, fault] of Object.entries(harms)) {
    test(`the rules find what they are there for: ${harm}`, async () => {
      await client.query('begin');
      await client.query(harm);
      assert.deepEqual((await readSchema(client)).faults, [fault]);
      await client.query('rollback');
    });
  }
});
