import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { beginWriting, openPools } from '../../src/store/postgres/connection.ts';
import { openSql as openPostgresSql } from '../../src/store/postgres/sql.ts';
import { statement, write } from '../../src/store/sql.ts';
import type { Sql, Steps } from '../../src/store/sql.ts';
import { openReading, openWriting } from '../../src/store/sqlite/connection.ts';
import { openSql as openFileSql } from '../../src/store/sqlite/sql.ts';
import { usePostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/service.ts';

const postgres = usePostgres();
const createTable = 'create table counts (name text primary key, n integer not null)';

interface Place {
  /** Two processes on one database. */
  open(): Sql;
  close(): Promise<void>;
}

function onFile(): Place {
  const folder = temporaryFolder();
  const path = join(folder.path, 'sql.db');
  const first = openWriting(path);
  first.exec(createTable);
  const opened = [first];
  return {
    open() {
      const [db, reading] = [openWriting(path), openReading(path)];
      opened.push(db, reading);
      return openFileSql(db, reading);
    },
    async close() {
      for (const db of opened) db.close();
      folder.remove();
    },
  };
}

async function inPostgres(): Promise<Place> {
  const url = await postgres.createDatabase();
  await postgres.sql(url, createTable);
  const opened: ReturnType<typeof openPools>[] = [];
  const traits = { synchronousCommit: 'on', hasCitus: false };
  return {
    open() {
      const pools = openPools(url, 'tool');
      opened.push(pools);
      return openPostgresSql({ ...pools, synchronousCommit: 'on', begin: beginWriting(traits) });
    },
    async close() {
      for (const pools of opened) await pools.end();
    },
  };
}

const add = 'insert into counts (name, n) values (?1, ?2)';
const readAll = 'select name, n from counts order by name';

for (const [name, prepare] of [
  ['SQLite', onFile],
  ['PostgreSQL', inPostgres],
] as const) {
  async function openedPlace(): Promise<{ sql: Sql; beside: Sql }> {
    const place = await prepare();
    after(() => place.close());
    return { sql: place.open(), beside: place.open() };
  }

  test(`${name}: a transaction that fails leaves nothing, and the next one works`, async () => {
    const { sql, beside } = await openedPlace();
    const failing = sql.transaction(function* () {
      yield statement(add, ['a', 1]);
      throw new Error('changed my mind');
    });
    await assert.rejects(failing, /changed my mind/);
    const twice = sql.transaction(function* () {
      yield statement(add, ['b', 1]);
      yield statement(add, ['b', 2]);
    });
    await assert.rejects(twice);
    assert.deepEqual(await beside.all(readAll), []);
    assert.deepEqual((await write(sql, add, ['c', 3])).changes, 1);
    assert.deepEqual({ ...(await beside.all(readAll))[0] }, { name: 'c', n: 3 });
  });

  test(`${name}: transactions that lock a table run one after the other, in any process`, async () => {
    const { sql, beside } = await openedPlace();
    await write(sql, add, ['a', 0]);
    function* increment(): Steps<number> {
      const [row] = (yield statement('select n from counts')).rows;
      const next = Number(row?.['n']) + 1;
      yield statement('update counts set n = ?1', [next]);
      return next;
    }
    const numbers = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        (i % 2 === 0 ? sql : beside).transaction(increment, 'counts'),
      ),
    );
    assert.deepEqual(
      numbers.sort((a, b) => a - b),
      Array.from({ length: 40 }, (_, i) => i + 1),
    );
  });

  test(`${name}: results, lists and parameters that are used twice`, async () => {
    const { sql } = await openedPlace();
    for (const [i, label] of ['a', 'b', 'c'].entries()) await write(sql, add, [label, i]);
    const among = `select name from counts where ${sql.isAmong('name', '?1')} order by name`;
    const found = await sql.all(among, [['c', 'a', "o'x", '"']]);
    assert.deepEqual(
      found.map((row) => row['name']),
      ['a', 'c'],
    );
    assert.deepEqual(await sql.all(among, [[]]), []);
    const { changes, rows } = await write(
      sql,
      'update counts set n = n + ?2 where n >= ?1 and n <= ?1 + ?2 returning name',
      [1, 1],
    );
    assert.equal(changes, 2);
    assert.deepEqual(new Set(rows.map((row) => row['name'])), new Set(['b', 'c']));
    assert.equal((await write(sql, 'delete from counts where n > ?1', [9])).changes, 0);
  });
}
