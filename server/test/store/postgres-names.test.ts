import assert from 'node:assert/strict';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { test } from 'node:test';
import pg from 'pg';
import { overviewQuery } from '../../src/core/analytics.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { arrayOfPlain, arrayOfText } from '../../src/store/postgres/array-literal.ts';
import { eventually } from '../support/eventually.ts';
import { usePostgres } from '../support/postgres.ts';

const postgres = usePostgres({ log_statement: 'all', log_parameter_max_length: '0' });

/** Like a pooler, it reports another process id to its clients than that of the server process behind it. */
async function startPretender(): Promise<{ port: number; close(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((caller) => {
    const behind = connect(postgres.port, '127.0.0.1');
    for (const socket of [caller, behind]) {
      sockets.add(socket);
      socket.on('error', () => {});
    }
    caller.pipe(behind);
    behind.on('close', () => caller.destroy());
    behind.on('data', (data: Buffer) => {
      const at = data.indexOf(Buffer.from('K\0\0\0\x0c', 'latin1'));
      if (at !== -1) data.writeInt32BE(data.readInt32BE(at + 5) + 1, at + 5);
      caller.write(data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** What was executed for some writes and reads: the names of the statements as the log has them. Begin and commit need no plan. */
async function namesUsed(url: string, mark: string): Promise<string[]> {
  const before = postgres.log().length;
  const store = await openPostgresStore({ url, clock: { kind: 'system' }, role: 'server' });
  const { team } = await store.ensureTeam('t', 1);
  for (let i = 0; i < 3; i++) {
    await store.append([{ teamId: team.id, drafts: [draftTrace({ model: 'm' })] }]);
    await store.tallies(team.id, overviewQuery);
  }
  await store.close();
  await postgres.sql(url, `select '${mark}'`);
  const isLogged = () => postgres.log().includes(mark);
  await eventually('the mark in the log', 120_000, isLogged, 10);
  const log = postgres.log().slice(before);
  return [...log.matchAll(/LOG: {2}execute (\S+): (?!begin|commit)/g)].map(([, name = '']) => name);
}

test('statements have names, so that they are planned once; behind a pooler they have none', async () => {
  const direct = await postgres.createDatabase();
  const named = await namesUsed(direct, 'the direct ones');
  assert.ok(named.length > 15, String(named.length));
  assert.ok(
    named.every((name) => /^tracetally_[0-9a-f]{32}$/.test(name)),
    named.join(),
  );
  const pretender = await startPretender();
  try {
    const pooled = (await postgres.createDatabase()).replace(
      `:${postgres.port}/`,
      `:${pretender.port}/`,
    );
    const unnamed = await namesUsed(pooled, 'the pooled ones');
    assert.ok(unnamed.length > 15, String(unnamed.length));
    assert.deepEqual(new Set(unnamed), new Set(['<unnamed>']));
  } finally {
    pretender.close();
  }
});

test('arrays of any text and number come back from PostgreSQL as they went', async () => {
  const url = await postgres.createDatabase();
  const texts = [
    '',
    ' ',
    'NULL',
    null,
    '"',
    '\\',
    '\\"{},',
    'a,b',
    "it's",
    '🙂\u{10ffff}',
    '\t\n',
    '{x}',
  ];
  const numbers = [0, null, 1e-7, 123456789.012345, 1e6, 5e-324, 999999.999999999];
  const [row] = await postgres.sql(
    url,
    'select $1::text[] as texts, $2::double precision[] as numbers, $3::boolean[] as flags',
    [arrayOfText(texts), arrayOfPlain(numbers), arrayOfPlain([true, false, null])],
  );
  assert.deepEqual(row, { texts, numbers, flags: [true, false, null] });
});

test('statements keep their names if a transaction has failed in which they were prepared', async () => {
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ url, clock: { kind: 'system' }, role: 'server' });
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  try {
    const { team } = await store.ensureTeam('t', 1);
    const append = async (keyHash: string) => {
      const request = { keyHash, bodyHash: 'b', rejected: null };
      const drafts = [draftTrace({ model: 'm' })];
      const [outcome] = await store.append([{ teamId: team.id, drafts, request }]);
      assert.equal(outcome?.kind, 'stored');
    };
    // This call fails in which the statement was prepared, since the counter is locked.
    await other.query('insert into team_counters select id, 1, 0, 0 from teams');
    await other.query('begin');
    await other.query('select 1 from team_counters for update');
    const waiting = append('first');
    await eventually('a write that has failed once', 120_000, () =>
      postgres.log().includes('canceling statement due to lock timeout') ? true : null,
    );
    await other.query('rollback');
    await waiting;
    await append('second');
    await append('third');
    assert.doesNotMatch(postgres.log(), /prepared statement "\S+" already exists/);
  } finally {
    await other.end();
    await store.close();
  }
});
