import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { overviewQuery } from '../../src/core/analytics.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { newestSchema, readMigrations } from '../../src/store/migrations.ts';
import { Failure, OperatorError } from '../../src/errors.ts';
import { unfitBecause } from '../../src/store/postgres/check-server.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import type { TraceWrite } from '../../src/store/trace-writer.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { callCli, runCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { createDistributed } from '../support/cluster-like.ts';
import { usePostgres } from '../support/postgres.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import { startCommitProxy } from './commit-proxy.ts';
import type { Mishap } from './commit-proxy.ts';

const postgres = usePostgres();
const folder = temporaryFolder();
after(() => folder.remove());
const options = { clock: { kind: 'system' }, role: 'server' } as const;
const open = (url: string) => openPostgresStore({ ...options, url });
/** Nothing is rolled up, so that each commit is one that the test expects. */
const openThrough = (url: string, { port }: { port: number }) =>
  openPostgresStore({
    ...options,
    url: url.replace(`:${postgres.port}/`, `:${port}/`),
    rolling: 'manual',
  });

function write(teamId: string, ...models: string[]): TraceWrite {
  return { teamId, drafts: models.map((model) => draftTrace({ model })) };
}

async function modelsOf(store: Store, teamId: string): Promise<string[]> {
  const { first } = await store.page(teamId, { page: 1, limit: 100, omit: new Set() });
  return first.map(({ model }) => model);
}

async function messageOfOpening(url: string, mustExist = false): Promise<string> {
  const error = await openPostgresStore({ ...options, url, mustExist }).then(
    () => assert.fail('it opened'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof OperatorError, String(error));
  assert.doesNotMatch(error.message, /a password|wrong one|\n/);
  return error.message;
}

const schema = newestSchema(readMigrations(new URL('../../migrations/postgres/', import.meta.url)));

test('ten servers that start at once on an empty database set it up once, and all work', async () => {
  const url = await postgres.createDatabase();
  const stores = await Promise.all(Array.from({ length: 10 }, () => open(url)));
  try {
    assert.deepEqual(await postgres.sql(url, 'select version from tracetally_schema'), [
      { version: schema },
    ]);
    const secrets = await Promise.all(stores.map((store) => store.sessionSecret()));
    for (const secret of secrets) assert.deepEqual(secret, secrets[0], 'all share one secret');
    const made = await Promise.all(stores.map((store) => store.ensureTeam('t', 1)));
    assert.equal(made.filter(({ created }) => created).length, 1);
    const teamId = made[0]?.team.id ?? '';
    const outcomes = await Promise.all(stores.map((store) => store.append([write(teamId, 'm')])));
    assert.ok(outcomes.every(([outcome]) => outcome?.kind === 'stored'));
    assert.deepEqual(await verifyTeam(stores[0] ?? assert.fail(), teamId), {
      traces: 10,
      differences: [],
    });
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
});

/** Every row with the transaction that wrote it, every column, index and function. */
async function contentOf(url: string): Promise<unknown> {
  const tables = await postgres.sql(
    url,
    `select relname, array(select attname::text || ' ' || atttypid from pg_attribute where attrelid = c.oid order by attnum) as columns
     from pg_class c where relnamespace = 'public'::regnamespace order by relname`,
  );
  const functions = await postgres.sql(
    url,
    `select proname, prosrc from pg_proc where pronamespace = 'public'::regnamespace order by proname`,
  );
  const names = await postgres.sql(
    url,
    `select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by relname`,
  );
  const rows = [];
  for (const { relname } of names) {
    rows.push(await postgres.sql(url, `select xmin::text, t::text from ${String(relname)} t`));
  }
  return { tables, functions, rows };
}

// The first ones were used before the first release.
for (const other of [1, 7, 2 ** 31 - 1]) {
  test(`a database of schema ${other} is refused by servers and commands, and left unchanged`, async () => {
    const url = await postgres.createDatabase();
    const store = await open(url);
    const { team } = await store.ensureTeam('t', 1);
    await store.append([write(team.id, 'm')]);
    await store.close();
    await postgres.sql(url, `update tracetally_schema set version = ${other}`);
    const before = await contentOf(url);
    const words =
      ` was written by another version of TraceTally (schema ${other}; this version needs schema ${schema}). ` +
      'Use the version that wrote it, or choose an empty database with --database. Nothing was changed.';
    const message = await messageOfOpening(url);
    assert.ok(message.endsWith(words), message);
    const target = `sqlite:${folder.path}/${other}.db`;
    for (const command of [
      ['keys', 'list', '--database', url],
      ['keys', 'create', '--team', 'x', '--database', url],
      ['verify', '--database', url],
      ['copy', '--from', url, '--to', target],
    ]) {
      const { code, stdout, stderr } = await callCli(command);
      assert.deepEqual([code, stdout], [1, ''], command.join(' '));
      assert.ok(stderr.includes(words), stderr);
    }
    assert.deepEqual(await contentOf(url), before);
  });
}

test('a database that is only looked at is not set up, and one of something else is not touched', async () => {
  const url = await postgres.createDatabase();
  assert.match(await messageOfOpening(url, true), /has no TraceTally tables\.$/);
  await postgres.sql(url, 'create table traces (theirs text)');
  assert.match(await messageOfOpening(url), /tables of another application/);
  const tables = await postgres.sql(
    url,
    "select relname from pg_class where relnamespace = 'public'::regnamespace",
  );
  assert.deepEqual(tables, [{ relname: 'traces' }]);
});

test('a server that cannot start says why in one sentence, without the password', async () => {
  const url = await postgres.createDatabase();
  const at = `127.0.0.1:${postgres.port}`;
  assert.equal(
    await messageOfOpening(postgres.url('test_1', { password: 'wrong one' })),
    `PostgreSQL at ${at} rejected the password of the user "tally_owner".`,
  );
  assert.equal(
    await messageOfOpening(postgres.url('nowhere')),
    `There is no database "nowhere" on PostgreSQL at ${at}. Create it first.`,
  );
  assert.equal(
    await messageOfOpening(postgres.url('x', { port: 1 })),
    'Cannot reach PostgreSQL at 127.0.0.1:1/x: connect ECONNREFUSED 127.0.0.1:1.',
  );
  assert.match(
    await messageOfOpening('postgres://u@no-such-host.invalid/x'),
    /^Cannot reach PostgreSQL at no-such-host\.invalid:5432\/x: .*\.$/,
  );
  const { pathname } = new URL(url);
  await postgres.sql(
    url,
    `alter database ${pathname.slice(1)} set default_transaction_read_only = on`,
  );
  assert.match(await messageOfOpening(url), /is read-only \(default_transaction_read_only is on\)/);
  await postgres.sql(postgres.url('postgres'), "create role stranger login password 'wrong one'");
  const narrow = await postgres.createDatabase();
  const stranger = narrow.replace(/\/\/[^@]*@/, '//stranger:wrong%20one@');
  assert.match(await messageOfOpening(stranger), /is not allowed to create tables/);
});

test('a server that could lose or change what it acknowledged is refused', () => {
  const fit = {
    version: 180_004,
    version_text: '18.4',
    is_replica: false,
    read_only: 'off',
    fsync: 'on',
    synchronous_commit: 'on',
    encoding: 'UTF8',
    float_digits: 1,
    citus_version: null,
    backend_pid: 1,
  };
  assert.equal(unfitBecause(fit), null);
  assert.match(
    unfitBecause({ ...fit, version: 130_020, version_text: '13.20' }) ?? '',
    /13\.20; TraceTally needs 14 or newer/,
  );
  assert.match(unfitBecause({ ...fit, is_replica: true }) ?? '', /replica/);
  assert.match(unfitBecause({ ...fit, fsync: 'off' }) ?? '', /fsync/);
  assert.match(unfitBecause({ ...fit, encoding: 'LATIN1' }) ?? '', /UTF8/);
  assert.match(unfitBecause({ ...fit, float_digits: 0 }) ?? '', /extra_float_digits/);
});

test('commits are synced even if the database is set to asynchronous commits', async () => {
  const url = await postgres.createDatabase();
  const { pathname } = new URL(url);
  await postgres.sql(url, `alter database ${pathname.slice(1)} set synchronous_commit = off`);
  assert.deepEqual(await postgres.sql(url, 'show synchronous_commit'), [
    { synchronous_commit: 'off' },
  ]);
  const store = await open(url);
  try {
    const { team } = await store.ensureTeam('t', 1);
    await postgres.sql(url, 'create table seen (level text)');
    await postgres.sql(
      url,
      `create function note() returns trigger language plpgsql as $$
       begin insert into seen values (current_setting('synchronous_commit')); return null; end $$`,
    );
    await postgres.sql(url, 'create trigger note after insert on traces execute function note()');
    await store.append([write(team.id, 'm')]);
    assert.deepEqual(await postgres.sql(url, 'select level from seen'), [{ level: 'on' }]);
  } finally {
    await store.close();
  }
});

test('of the same request at several servers at once exactly one is stored', async () => {
  const url = await postgres.createDatabase();
  const stores = [await open(url), await open(url), await open(url)];
  try {
    const { team } = await (stores[0] ?? assert.fail()).ensureTeam('t', 1);
    const once = { keyHash: 'k', bodyHash: 'b', rejected: null };
    const calls = Array.from({ length: 10 }, (_, i) =>
      stores.map((store) =>
        store.append([
          write(team.id, `before ${i}`),
          { ...write(team.id, 'm', 'n'), request: once },
        ]),
      ),
    ).flat();
    const outcomes = (await Promise.all(calls)).map(([, outcome]) => outcome);
    assert.equal(outcomes.filter((outcome) => outcome?.kind === 'stored').length, 1);
    const places = outcomes.flatMap((outcome) =>
      outcome?.kind === 'replayed' ? [`${outcome.firstSeq} ${outcome.count}`] : [],
    );
    assert.deepEqual([places.length, new Set(places).size], [29, 1]);
    const report = await verifyTeam(stores[0] ?? assert.fail(), team.id);
    assert.deepEqual(report, { traces: 32, differences: [] });
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
});

test('what one server stores another serves at once, and a key that is revoked ends at both within a second', async () => {
  const flags = { database: await postgres.createDatabase() };
  const [here, there] = [await startTestService({ flags }), await startTestService({ flags })];
  try {
    const { key, keyId } = await here.keyFor();
    for (let i = 1; i <= 20; i++) {
      const [writer, reader] = i % 2 === 0 ? [here, there] : [there, here];
      assert.equal((await writer.call(key, 'POST', '/traces', { model: 'm' })).status, 201);
      assert.equal((await reader.call(key, 'GET', '/traces')).json.total, i);
      assert.equal((await reader.call(key, 'GET', '/analytics/overview')).json.total_calls, i);
    }
    assert.equal(await there.beside.revokeKey(keyId, Date.now() * 1000), true);
    const revokedMs = performance.now();
    for (const service of [here, there]) {
      let lastUseMs = 0;
      await eventually('the end of the key', 120_000, async () => {
        const askedMs = performance.now() - revokedMs;
        const { status } = await service.call(key, 'GET', '/traces');
        if (status === 200) lastUseMs = askedMs;
        return status === 401;
      });
      assert.ok(lastUseMs < 1000, `it worked ${lastUseMs} ms after its end`);
    }
  } finally {
    await here.stop();
    await there.stop();
  }
});

const layouts = [
  ['on one server', () => postgres.createDatabase()],
  ['with distributed tables', () => createDistributed(postgres)],
] as const;

for (const [place, create] of layouts)
  test(`a commit that is lost on its way, or whose answer is, is stored exactly once, ${place}`, async () => {
    const url = await create();
    const proxy = await startCommitProxy(postgres.port);
    const direct = await open(url);
    const store = await openThrough(url, proxy);
    try {
      const mishaps: Mishap[][] = [
        ['lost'],
        ['answerLost'],
        ['late'],
        ['lost', 'late'],
        ['lost', 'lost', 'answerLost'],
        ['denied'],
        ['lost', 'denied'],
        ['deniedAfter'],
      ];
      for (const [i, plan] of mishaps.entries()) {
        // The first trace of a team adds its counter.
        for (const team of [`new ${i}`, 'old']) {
          const { id } = (await direct.ensureTeam(team, 1)).team;
          if (team === 'old') await store.append([write(id, 'before')]);
          const before = await modelsOf(direct, id);
          proxy.plan.push(...plan);
          const [outcome] = await store.append([write(id, `${i}a`, `${i}b`)]);
          assert.equal(outcome?.kind, 'stored', `${plan.join()} ${JSON.stringify(outcome)}`);
          assert.deepEqual(proxy.plan, []);
          assert.deepEqual(await modelsOf(direct, id), [`${i}b`, `${i}a`, ...before]);
          assert.deepEqual((await verifyTeam(direct, id)).differences, []);
          const stamps = outcome?.kind === 'stored' ? outcome.stamps : [];
          assert.equal((await direct.trace(id, stamps[0]?.id ?? ''))?.model, `${i}a`);
        }
      }
    } finally {
      await store.close();
      await proxy.close();
      await direct.close();
    }
  });

for (const [place, create] of layouts)
  test(`a transaction that arrives after its write has failed stores nothing, ${place}`, async () => {
    const url = await create();
    const proxy = await startCommitProxy(postgres.port);
    const direct = await open(url);
    const store = await openThrough(url, proxy);
    try {
      const { id } = (await direct.ensureTeam('t', 1)).team;
      await store.append([write(id, 'before')]);
      const before = await modelsOf(direct, id);
      // After each attempt, another transaction asks what became of it.
      const attempts = limits.postgresAttemptsMax - 1;
      const retries = Array.from({ length: attempts }, () => ['lost', 'none']);
      proxy.plan.push('late', 'none', ...(retries.flat() as Mishap[]));
      const [outcome] = await store.append([write(id, 'late')]);
      assert.equal(outcome?.kind === 'failed' && outcome.code, 'store_unavailable');
      assert.deepEqual(proxy.plan, []);
      await eventually('the late transaction', 120_000, () =>
        proxy.lateEnded() > 0 ? true : null,
      );
      await direct.append([write(id, 'last')]);
      assert.deepEqual(await modelsOf(direct, id), ['last', ...before]);
      assert.deepEqual((await verifyTeam(direct, id)).differences, []);
    } finally {
      await store.close();
      await proxy.close();
      await direct.close();
    }
  });

test('a fault of the store is a failure that callers know', async () => {
  const url = await postgres.createDatabase();
  const store = await open(url);
  const { team } = await store.ensureTeam('t', 1);
  const { pathname } = new URL(url);
  await postgres.sql(
    postgres.url('postgres'),
    `alter database ${pathname.slice(1)} allow_connections false`,
  );
  await postgres.sql(
    postgres.url('postgres'),
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1',
    [pathname.slice(1)],
  );
  const isKnown = (error: unknown) =>
    error instanceof Failure && error.code === 'store_unavailable';
  await assert.rejects(store.ping(), isKnown);
  await assert.rejects(store.tallies(team.id, overviewQuery), isKnown);
  await assert.rejects(store.ensureTeam('u', 1), isKnown);
  await assert.rejects(verifyTeam(store, team.id), isKnown);
  const [outcome] = await store.append([write(team.id, 'm')]);
  assert.equal(outcome?.kind === 'failed' && outcome.code, 'store_unavailable');
  store.noteKeyUse('key', 1);
  await store.close();
});

test('the command line works on PostgreSQL as it does on a file', async () => {
  const env = { TRACETALLY_DATABASE: await postgres.createDatabase() };
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCli([...args, '--json'], env);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout) as Record<string, unknown>;
  };
  const missing = await runCli(['verify'], env);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /has no TraceTally tables/);
  assert.equal((await json('demo', '--count', '3000', '--team', 'demo'))['traces'], 3000);
  const { key_id: keyId } = await json('keys', 'create', '--team', 'demo');
  await json('keys', 'revoke', String(keyId));
  assert.deepEqual(await json('verify'), { ok: true, teams: 1, traces: 3000, differences: [] });
});
