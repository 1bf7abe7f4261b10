import assert from 'node:assert/strict';
import { chownSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertRefused, runServeToEnd } from '../cli/helpers.ts';
import { eventually } from '../support/eventually.ts';
import { usePostgres } from '../support/postgres.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

const postgres = usePostgres();

/** Starts PostgreSQL again as a standby: in recovery, without an end, and readable. */
async function becomeReplica(database: string): Promise<void> {
  const [row] = await postgres.sql(database, 'show data_directory');
  const data = String(row?.['data_directory']);
  await postgres.kill();
  const signal = join(data, 'standby.signal');
  writeFileSync(signal, '');
  const { uid, gid } = statSync(data);
  chownSync(signal, uid, gid);
  await postgres.start();
  assert.deepEqual(await postgres.sql(database, 'select pg_is_in_recovery() as is_replica'), [
    { is_replica: true },
  ]);
}

const post = async (service: TestService, key: string) => {
  const { status, json, headers } = await service.call(key, 'POST', '/traces', { model: 'm' });
  return { status, code: json.code, retryAfter: headers.get('retry-after') };
};
const refusal = { status: 503, code: 'store_unavailable', retryAfter: '5' };

async function readyStatus(service: TestService): Promise<number> {
  return (await service.call(null, 'GET', '/readyz')).status;
}

async function assertServes(service: TestService, key: string, total: number): Promise<void> {
  const isReady = async () => (await readyStatus(service)) === 200;
  await eventually('a service that is ready', 120_000, isReady);
  assert.equal((await post(service, key)).status, 201);
  assert.equal((await service.call(key, 'GET', '/traces')).json.total, total);
}

test('a database that is set to read-only is answered with 503 until it is set back', async () => {
  const database = await postgres.createDatabase();
  const name = new URL(database).pathname.slice(1);
  const owner = postgres.url('postgres');
  const setReadOnly = async (value: 'on' | 'off') => {
    await postgres.sql(
      owner,
      `alter database ${name} set default_transaction_read_only = ${value}`,
    );
    // A connection keeps the setting that it began with.
    await postgres.sql(
      owner,
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1',
      [name],
    );
  };
  const service = await startTestService({ flags: { database } });
  try {
    const { key } = await service.keyFor();
    await assertServes(service, key, 1);
    await setReadOnly('on');
    assert.deepEqual(await post(service, key), refusal);
    assert.equal(await readyStatus(service), 503);
    assert.equal((await service.call(key, 'GET', '/traces')).json.total, 1, 'reads go on');
    await setReadOnly('off');
    await assertServes(service, key, 2);
  } finally {
    await service.stop();
  }
});

test('a database that becomes a read-only replica is refused at the start and answered with 503 until it is promoted', async () => {
  const database = await postgres.createDatabase();
  const service = await startTestService({ flags: { database } });
  try {
    const { key } = await service.keyFor();
    await assertServes(service, key, 1);

    await becomeReplica(database);
    const refused = await runServeToEnd(['--port', '0'], { TRACETALLY_DATABASE: database });
    const { host, pathname } = new URL(database);
    const sentence = `PostgreSQL at ${host}${pathname} is a read-only replica. Use the address of the primary.\n`;
    assertRefused(refused, 1, /replica/);
    assert.equal(refused.stderr, sentence);

    assert.equal(await readyStatus(service), 503);
    assert.deepEqual(await post(service, key), refusal);
    assert.equal((await service.call(key, 'GET', '/traces')).json.total, 1, 'reads go on');

    await postgres.sql(database, 'select pg_promote()');
    await assertServes(service, key, 2);
  } finally {
    await service.stop();
  }
});
