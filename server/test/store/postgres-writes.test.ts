import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import type { TraceWrite } from '../../src/store/trace-writer.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { loggedStatements } from '../support/logged-statements.ts';
import { usePostgres } from '../support/postgres.ts';

const postgres = usePostgres();
const options = { clock: { kind: 'system' }, role: 'server', rolling: 'manual' } as const;

function write(teamId: string, ...models: string[]): TraceWrite {
  return { teamId, drafts: models.map((model) => draftTrace({ model, input: 'in' })) };
}

async function makeTeams(store: Store, count: number): Promise<string[]> {
  const teams = [];
  for (let i = 0; i < count; i++) teams.push((await store.ensureTeam(`team ${i}`, 1)).team.id);
  return teams;
}

const statementsOf = (url: string, work: () => Promise<void>) =>
  loggedStatements(postgres, url, work);

test('writes of 20 teams are one statement, like a write of one trace, and touch no rollups', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const { pathname } = new URL(url);
  await postgres.sql(url, `alter database ${pathname.slice(1)} set log_statement = 'all'`);
  await postgres.sql(url, `alter database ${pathname.slice(1)} set log_parameter_max_length = 0`);
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const teams = await makeTeams(store, 20);
  const append = (name: string, ids: readonly string[], models: readonly string[]) => async () => {
    const outcomes = await store.append(
      ids.map((id) => ({
        ...write(id, ...models),
        request: { keyHash: name, bodyHash: 'b', rejected: null },
      })),
    );
    assert.ok(outcomes.every(({ kind }) => kind === 'stored'));
  };
  // The first write of a team adds its counter.
  await append('first', teams, ['m'])();
  const [one = ''] = teams;
  const ofOne = await statementsOf(url, append('one', [one], ['m']));
  const models = Array.from({ length: 90 }, (_, i) => `m${i}`);
  const ofMany = await statementsOf(url, append('many', teams, models));
  for (const statements of [ofOne, ofMany]) {
    assert.equal(statements.length, 1, statements.join('\n'));
    assert.match(statements.join(), /select tracetally_store_/);
  }
  const [called = assert.fail('no function')] = await postgres.sql(
    url,
    "select prosrc as text from pg_proc where proname like 'tracetally_store_%'",
  );
  assert.match(String(called['text']), /insert into traces/);
  assert.doesNotMatch(String(called['text']), /rollup|team_marks/);
  for (const id of teams) assert.deepEqual((await verifyTeam(store, id)).differences, []);
});

test('while another process has locked a team for 10 s, the other teams write as often as at another server', async (t) => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  // It has no write of the locked team, but the same disk, CPU and event loop.
  const control = await openPostgresStore({ ...options, url });
  closing.defer(() => control.close());
  const [held = '', ...free] = await makeTeams(store, 9);
  const [shared, apart] = [free.slice(0, 4), free.slice(4)];
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  closing.defer(() => other.end());

  /** How often these teams can write, each of them one write after the other. */
  async function writesOf(by: Store, teams: readonly string[], untilMs: number): Promise<number> {
    let count = 0;
    const writers = teams.map(async (id) => {
      while (performance.now() < untilMs) {
        const [outcome] = await by.append([write(id, 'm')]);
        assert.equal(outcome?.kind, 'stored');
        count += 1;
      }
    });
    await Promise.all(writers);
    return count;
  }

  await store.append([held, ...free].map((id) => write(id, 'm')));
  await other.query('begin');
  await other.query('select 1 from team_counters where team_id = $1 for update', [held]);
  const untilMs = performance.now() + 10_000;
  /** The locked team keeps writing: one write after the other, all of which wait for the lock. */
  const heldWrites = (async () => {
    const kinds: string[] = [];
    while (performance.now() < untilMs)
      kinds.push((await store.append([write(held, 'm')]))[0]?.kind ?? '');
    return kinds;
  })();
  const [sharedWrites, apartWrites] = await Promise.all([
    writesOf(store, shared, untilMs),
    writesOf(control, apart, untilMs),
  ]);
  await other.query('rollback');
  const kinds = await heldWrites;
  const words = `${sharedWrites} writes, at the other server ${apartWrites}`;
  t.diagnostic(words);
  // Those that wait for the lock of the team can write a few times.
  assert.ok(sharedWrites > apartWrites / 4, words);
  assert.ok(kinds.includes('failed'), 'the lock lasted longer than a write may wait');
  const [outcome] = await store.append([write(held, 'after')]);
  assert.equal(outcome?.kind, 'stored');
  assert.deepEqual((await verifyTeam(store, held)).differences, []);
});

test('a team whose lock is free again stores what has waited, in order', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const [held = '', free = ''] = await makeTeams(store, 2);
  await store.append([write(held, 'm'), write(free, 'm')]);
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  closing.defer(() => other.end());
  await other.query('begin');
  await other.query('select 1 from team_counters where team_id = $1 for update', [held]);
  const waiting = ['a', 'b', 'c'].map((model) => store.append([write(held, model)]));
  const [ofFree] = await store.append([write(free, 'm')]);
  assert.equal(ofFree?.kind, 'stored');
  await other.query('rollback');
  for (const [outcome] of await Promise.all(waiting)) assert.equal(outcome?.kind, 'stored');
  const { first } = await store.page(held, { page: 1, limit: 9, omit: new Set() });
  assert.deepEqual(
    first.map(({ model }) => model),
    ['c', 'b', 'a', 'm'],
  );
});

test('a team with many waiting writes does not delay the write of another team', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const [busy = '', other = ''] = await makeTeams(store, 2);
  const models = Array.from({ length: 500 }, () => 'm');
  // Several transactions of the busy team are waiting.
  const writes = (4 * limits.commitRowsMax) / models.length;
  let isEarly = false;
  // In the first rounds a connection for the other team may still have to be opened, on a machine that is busy with the flood.
  for (let round = 0; round < 6 && !isEarly; round++) {
    let done = 0;
    const flood = Array.from({ length: writes }, async () => {
      await store.append([write(busy, ...models)], true);
      done += 1;
    });
    await store.append([write(other, 'm')]);
    isEarly = done < writes;
    await Promise.all(flood);
  }
  assert.ok(isEarly, 'the other team did not wait for all of them');
});

test('a write that the database refuses fails alone, whatever teams share its transaction', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const teams = await makeTeams(store, 16);
  const poison = write(teams[5] ?? '', 'm');
  Object.assign(poison.drafts[0] ?? {}, { model: null });
  const noTeam = write('00000000-0000-7000-8000-000000000000', 'm');
  const outcomes = await store.append([...teams.map((id) => write(id, 'm')), poison, noTeam]);
  const kinds = outcomes.map(({ kind }) => kind);
  assert.deepEqual(kinds, [...teams.map(() => 'stored'), 'failed', 'failed']);
  for (const id of teams) {
    assert.deepEqual(await verifyTeam(store, id), { traces: 1, differences: [] });
  }
});

test('a table that is locked for a moment, as while an index is built, fails no write of many teams', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const teams = await makeTeams(store, 3);
  let requests = 0;
  const append = () => {
    const request = { keyHash: `request ${++requests}`, bodyHash: 'b', rejected: null };
    return store.append(teams.map((id) => ({ ...write(id, 'm'), request })));
  };
  await append();
  for (const table of ['traces', 'trace_payloads', 'idempotency']) {
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    closing.defer(() => other.end());
    await other.query(`begin; lock table ${table} in share mode`);
    const waiting = append();
    const isWaiting = `
      select 1 from pg_locks where not granted and relation = '${table}'::regclass`;
    await eventually('a write that waits', 120_000, async () =>
      (await postgres.sql(url, isWaiting)).length > 0 ? true : null,
    );
    // Several times as long as a write waits for the counter of one team.
    const [held] = await postgres.sql(
      url,
      `select pg_sleep(${(4 * limits.postgresSharedLockMsMax) / 1_000})`,
    );
    assert.ok(held);
    await other.query('commit');
    assert.deepEqual(
      (await waiting).map(({ kind }) => kind),
      ['stored', 'stored', 'stored'],
      table,
    );
  }
});

test('a call of many teams removes a bounded number of expired idempotency keys', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const teams = await makeTeams(store, 60);
  const append = async (keyHash: string) => {
    const request = { keyHash, bodyHash: 'b', rejected: null };
    const outcomes = await store.append(teams.map((id) => ({ ...write(id, 'm'), request })));
    assert.ok(outcomes.every(({ kind }) => kind === 'stored'));
  };
  await append('first');
  const each = limits.idempotencySweepRowsMax;
  assert.ok(teams.length * each > limits.postgresSweepRowsMax);
  await postgres.sql(
    url,
    `insert into idempotency (team_id, key_hash, body_hash, first_seq, count, expires_at_us)
     select id, 'old ' || n, 'b', 1, 1, 1 from teams, generate_series(1, ${each}) as n`,
  );
  const expired = async () => {
    const [row] = await postgres.sql(
      url,
      'select count(*)::integer as count from idempotency where expires_at_us = 1',
    );
    return row?.['count'];
  };
  await append('second');
  assert.equal(await expired(), teams.length * each - limits.postgresSweepRowsMax);
  await append('third');
  assert.equal(await expired(), 0);
});

test('a write is one statement also if another server has just written to the team, and if the team has no traces', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const { pathname } = new URL(url);
  await postgres.sql(url, `alter database ${pathname.slice(1)} set log_statement = 'all'`);
  const [one, two] = [
    await openPostgresStore({ ...options, url }),
    await openPostgresStore({ ...options, url }),
  ];
  closing.defer(async () => void (await Promise.all([one.close(), two.close()])));
  const teams = await makeTeams(one, 2);
  for (const store of [one, two, one, two]) {
    const lines = await statementsOf(url, () => appendAll(store, teams));
    assert.equal(lines.length, 1, lines.join('\n'));
  }
  for (const id of teams)
    assert.deepEqual(await verifyTeam(one, id), { traces: 4, differences: [] });
});

test('1,000 teams are stored in one call', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const { pathname } = new URL(url);
  await postgres.sql(url, `alter database ${pathname.slice(1)} set log_statement = 'all'`);
  await postgres.sql(url, `alter database ${pathname.slice(1)} set log_parameter_max_length = 0`);
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  await postgres.sql(
    url,
    `insert into teams (id, name, created_at_us) select gen_random_uuid(), 'one of many ' || n, 1 from generate_series(1, 1000) as n`,
  );
  const rows = await postgres.sql(url, "select id from teams where name like 'one of many %'");
  const teams = rows.map(({ id }) => String(id));
  const lines = await statementsOf(url, () => appendAll(store, teams));
  assert.equal(lines.length, 1, lines.join('\n'));
  const counted = await postgres.sql(
    url,
    'select count(*)::integer as traces, count(distinct team_id)::integer as teams, min(seq)::integer as seq from traces',
  );
  assert.deepEqual(counted, [{ traces: 1000, teams: 1000, seq: 1 }]);
});

test('servers that write to the same teams in any order keep the sequence dense and store each request once', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const stores: Store[] = [];
  for (let i = 0; i < 3; i++) {
    const store = await openPostgresStore({ ...options, url });
    closing.defer(() => store.close());
    stores.push(store);
  }
  const teams = await makeTeams(stores[0] ?? assert.fail(), 3);
  let stored = 0;
  for (let round = 0; round < 40; round++) {
    const outcomes = await Promise.all(
      // Some rounds have one writing server, some several.
      stores.slice(0, 1 + (round % stores.length)).map((store) => {
        const request = { keyHash: `round ${round >> 1}`, bodyHash: 'b', rejected: null };
        return store.append(teams.map((id) => ({ ...write(id, 'a', 'b'), request })));
      }),
    );
    const kinds = outcomes.flat().map(({ kind }) => kind);
    assert.ok(!kinds.includes('failed'), JSON.stringify(outcomes));
    stored += kinds.filter((kind) => kind === 'stored').length;
  }
  assert.equal(stored, 20 * teams.length);
  for (const id of teams) {
    assert.deepEqual(await verifyTeam(stores[0] ?? assert.fail(), id), {
      traces: 40,
      differences: [],
    });
  }
});

test('a column that a newer version adds while a server runs does not stop its writes', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ ...options, url });
  closing.defer(() => store.close());
  const [id = ''] = await makeTeams(store, 1);
  const append = () => appendAll(store, [id]);
  await append();
  await postgres.sql(url, "alter table traces add column later text default 'not sent'");
  await append();
  await postgres.sql(url, 'alter table trace_payloads add column later bytea');
  await append();
  await append();
  assert.deepEqual(await verifyTeam(store, id), { traces: 4, differences: [] });
  const rows = await postgres.sql(url, 'select later from traces order by seq desc limit 1');
  assert.deepEqual(rows, [{ later: 'not sent' }]);
});

async function appendAll(store: Store, teams: readonly string[]): Promise<void> {
  const outcomes = await store.append(teams.map((id) => write(id, 'm')));
  for (const outcome of outcomes) assert.equal(outcome.kind, 'stored', JSON.stringify(outcome));
}

test('reports of the same calls at two servers are counted once, also beside other writes of the team', async () => {
  await using closing = new AsyncDisposableStack();
  const url = await postgres.createDatabase();
  const stores = [
    await openPostgresStore({ ...options, url }),
    await openPostgresStore({ ...options, url }),
  ];
  const [one = assert.fail()] = stores;
  for (const store of stores) closing.defer(() => store.close());
  const teams = await makeTeams(one, 2);
  const rounds = 25;
  for (let round = 0; round < rounds; round++) {
    // The spans around these calls are known from the round before.
    const ids = ['a', 'b'].map((name) => [
      {
        span: `s:${round}.${name}`,
        outerSpan: `s:${round - 1}.outer`,
        response: null,
        emitter: 'emit',
        isError: false,
      },
    ]);
    const outcomes = await Promise.all(
      stores.map((store) =>
        store.append(
          teams.flatMap((id) => [write(id, 'm'), { ...write(id, 'a', 'b'), calls: ids }]),
        ),
      ),
    );
    for (const outcome of outcomes.flat()) {
      assert.equal(outcome.kind, 'stored', JSON.stringify(outcome));
    }
  }
  const traces = rounds * (stores.length + 2);
  for (const id of teams) assert.deepEqual(await verifyTeam(one, id), { traces, differences: [] });
});
