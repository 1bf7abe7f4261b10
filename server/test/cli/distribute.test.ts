import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import pg from 'pg';
import { OperatorError } from '../../src/errors.ts';
import { distributePostgres } from '../../src/tools/distribute-postgres.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { tablesByTeam, tablesOnEveryNode } from '../../src/store/postgres/tables.ts';
import { callCli } from '../support/cli.ts';
import { createClusterLike } from '../support/cluster-like.ts';
import { usePostgres } from '../support/postgres.ts';
import { assertRefused, toolInFolder } from './helpers.ts';

const postgres = usePostgres();

const clusterLike = () => createClusterLike(postgres);

async function callsAt(url: string): Promise<string[]> {
  const rows = await postgres.sql(url, 'select what from citus.calls order by no');
  return rows.map(({ what }) => String(what));
}

const distribute = (url: string) => distributePostgres(url, () => {});
const all = [...tablesOnEveryNode, ...tablesByTeam];
const [first, ...others] = tablesByTeam;
/** The small tables come first: those of a team point to them. */
const inOrder = [
  ...tablesOnEveryNode.map((table) => `${table} on every node`),
  `${first} by team_id, with none`,
  ...others.map((table) => `${table} by team_id, with ${first}`),
];
const isCreation = (what: string) => !what.startsWith('emptied');

/** A refusal in a sentence, after which nothing is otherwise than before. */
async function assertUnchanged(url: string, words: RegExp): Promise<void> {
  const before = await callsAt(url);
  await assert.rejects(distribute(url), (error) => {
    assert.ok(error instanceof OperatorError, String(error));
    assert.match(error.message, words);
    return true;
  });
  assert.deepEqual(await callsAt(url), before);
}

describe('tracetally distribute', { concurrency: 2 }, () => {
  test('a database of another schema is refused, and nothing is moved', async () => {
    const url = await clusterLike();
    await (await openPostgresStore({ url, clock: { kind: 'system' }, role: 'tool' })).close();
    await postgres.sql(url, 'update tracetally_schema set version = 7');
    await assertUnchanged(url, /was written by another version of TraceTally \(schema 7;/);
  });

  test('the wait for tables with open writes has a limit', async () => {
    const url = await clusterLike();
    await (await openPostgresStore({ url, clock: { kind: 'system' }, role: 'tool' })).close();
    const writer = new pg.Client({ connectionString: url });
    await writer.connect();
    try {
      await writer.query('begin');
      await writer.query('lock table traces in row exclusive mode');
      await assertUnchanged(url, /^The tables in PostgreSQL at .* are in use\. Stop the servers/);
      await writer.query('rollback');
      await distribute(url);
    } finally {
      await writer.end();
    }
  });

  test('nothing is moved while a server is connected, and its connections are counted', async () => {
    const url = await clusterLike();
    const server = await openPostgresStore({ url, clock: { kind: 'system' }, role: 'server' });
    try {
      await assertUnchanged(
        url,
        /^PostgreSQL at .* is in use by servers with \d+ connections?\. Stop the servers, .* Nothing was moved\.$/,
      );
    } finally {
      await server.close();
    }
    await distribute(url);
  });

  test('a version of Citus before 11.2 is refused, by the command and at the start of a server', async () => {
    const url = await clusterLike();
    for (const [version, isOld] of [
      ['10.2-4', true],
      ['11.1-1', true],
      ['11.2-1', false],
      ['12.0-1', false],
    ] as const) {
      await postgres.sql(url, `update pg_extension set extversion = $1 where extname = 'citus'`, [
        version,
      ]);
      const opening = async () =>
        (await openPostgresStore({ url, clock: { kind: 'system' }, role: 'server' })).close();
      if (!isOld) {
        await opening();
        continue;
      }
      const says =
        /has version 1\d\.\d-\d of the "citus" extension; TraceTally needs 11\.2 or newer\.$/;
      await assertUnchanged(url, says);
      await assert.rejects(opening(), { message: says });
    }
    await distribute(url);
  });

  test('a store that is not a Citus cluster is refused with a clear message and left unchanged', async (t) => {
    const onFile = await toolInFolder(t).run('distribute');
    assertRefused(onFile, 1, /^Only a PostgreSQL database with the "citus" extension/);
    const url = await postgres.createDatabase();
    const result = await callCli(['distribute', '--database', url]);
    assertRefused(
      result,
      1,
      /^PostgreSQL at .* is not a Citus cluster: .* does not have the "citus" extension\.\n$/,
    );
    const tables = "select 1 from pg_class where relnamespace = 'public'::regnamespace";
    assert.deepEqual(await postgres.sql(url, tables), []);
  });

  test('the first run distributes every table in order, and the second changes nothing', async () => {
    const url = await clusterLike();
    const run = (...flags: string[]) => callCli(['distribute', '--database', url, ...flags]);
    const once = await run('--json');
    assert.equal(once.code, 0, once.stderr);
    const report = JSON.parse(once.stdout) as {
      nodes: number;
      shards: number;
      tables: { table: string; layout: string; changed: boolean }[];
    };
    assert.deepEqual([report.nodes, report.shards], [3, 32]);
    assert.deepEqual(
      report.tables,
      all.map((table, i) => ({
        table,
        layout: i < tablesOnEveryNode.length ? 'on every node' : 'by team',
        changed: true,
      })),
    );
    const calls = await callsAt(url);
    assert.deepEqual(calls.filter(isCreation), inOrder);
    assert.deepEqual(
      calls.filter((what) => !isCreation(what)).sort(),
      all.map((table) => `emptied ${table}`).sort(),
      'what was moved is gone from the coordinator',
    );

    const again = await run();
    assert.equal(again.code, 0, again.stderr);
    assert.equal(again.stderr, '');
    assert.match(again.stdout, /32 shards on 3 nodes\.\n$/);
    assert.equal(again.stdout.match(/ no$/gm)?.length, all.length);
    assert.deepEqual(await callsAt(url), calls);
  });

  test('a run that fails midway changes nothing, and the next one distributes everything', async () => {
    const url = await clusterLike();
    await postgres.sql(
      url,
      `alter table citus.calls add constraint trouble check (what not like 'rollups by%')`,
    );
    await assertUnchanged(url, /^Cannot open PostgreSQL at .*trouble.*\.$/);
    await postgres.sql(url, 'alter table citus.calls drop constraint trouble');
    await distribute(url);
    assert.deepEqual((await callsAt(url)).filter(isCreation), inOrder);
  });

  test('tables that are distributed already are left alone, and the rest is distributed', async () => {
    const url = await clusterLike();
    await distribute(url);
    await postgres.sql(url, 'truncate citus.calls');
    await postgres.sql(
      url,
      `delete from citus.pg_dist_partition where logicalrelid in ('key_uses'::regclass, 'rollups'::regclass)`,
    );
    // One that a foreign key ties to a reference table is known to Citus too, and not yet what it should be.
    await postgres.sql(
      url,
      `update citus.pg_dist_partition set partmethod = 'n', partkey = null, repmodel = 's'
     where logicalrelid = 'idempotency'::regclass`,
    );
    const { tables } = await distribute(url);
    const made = ['key_uses', 'rollups', 'idempotency'];
    assert.deepEqual(
      tables.filter(({ changed }) => changed).map(({ table }) => table),
      made,
    );
    assert.deepEqual(
      (await callsAt(url)).filter(isCreation),
      inOrder.filter((what) => made.includes(what.split(' ')[0] ?? '')),
    );
  });

  test('a table that is distributed in another way is refused', async () => {
    const url = await clusterLike();
    await distribute(url);
    const harms: [harm: string, undo: string, words: RegExp][] = [
      [
        "partkey = 'id' where logicalrelid = 'traces'::regclass",
        "partkey = 'team_id' where logicalrelid = 'traces'::regclass",
        /traces should be distributed by team_id/,
      ],
      [
        "colocationid = 8 where logicalrelid = 'rollups'::regclass",
        "colocationid = 7 where logicalrelid = 'rollups'::regclass",
        /should be co-located/,
      ],
      [
        "partmethod = 'h', partkey = 'id', repmodel = 's' where logicalrelid = 'teams'::regclass",
        "partmethod = 'n', partkey = null, repmodel = 't' where logicalrelid = 'teams'::regclass",
        /teams should be a reference table/,
      ],
      [
        "partmethod = 'n', partkey = null, repmodel = 't' where logicalrelid = 'traces'::regclass",
        "partmethod = 'h', partkey = 'team_id', repmodel = 's' where logicalrelid = 'traces'::regclass",
        /traces should be distributed by team_id/,
      ],
    ];
    for (const [harm, undo, words] of harms) {
      await postgres.sql(url, `update citus.pg_dist_partition set ${harm}`);
      await assertUnchanged(url, words);
      await postgres.sql(url, `update citus.pg_dist_partition set ${undo}`);
    }
    await distribute(url);
  });

  test('a node that could lose what it acknowledged is refused, and one that does not answer', async () => {
    const url = await clusterLike();
    await postgres.sql(url, "update citus.nodes set fsync = 'off' where nodeid = 2");
    await assertUnchanged(url, /^Node 2 of the cluster runs with fsync = off/);
    await postgres.sql(url, 'update citus.nodes set success = false where nodeid = 2');
    await assertUnchanged(url, /^Node 2 of the cluster is not responding: connection refused\.$/);
    assert.deepEqual(await callsAt(url), []);
  });
});
