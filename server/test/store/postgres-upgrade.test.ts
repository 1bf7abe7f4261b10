import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { overviewQuery } from '../../src/core/analytics.ts';
import type { Tally } from '../../src/core/query.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { uuidV7 } from '../../src/core/uuid.ts';
import { readMigrations } from '../../src/store/migrations.ts';
import { encodePayload } from '../../src/store/payload.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { UpgradeProgress } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { usePostgres } from '../support/postgres.ts';
import { groupsOf, talliesOf } from '../support/service.ts';

const postgres = usePostgres();
const child = fileURLToPath(new URL('postgres-upgrade-until-killed.ts', import.meta.url));
const migrations = readMigrations(new URL('../../migrations/postgres/', import.meta.url));
const total = 3_500;
const day = 86_400_000_000;
const firstUs = 1_750_000_000_000_000;
const long = 'Some text that is worth compressing. '.repeat(100);

const measures =
  'count(*), count(*) filter (where is_error), coalesce(sum(latency_ms), 0), count(latency_ms),' +
  ' coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0),' +
  ' coalesce(sum((cost_usd * 1000000)::bigint), 0), 7 * count(*)';

/** A database of schema 3, the last one with sums in the writing transaction, with two teams. */
async function oldDatabase(): Promise<{ url: string; teams: string[] }> {
  const url = await postgres.createDatabase();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('create table tracetally_schema (version integer not null)');
    await client.query('insert into tracetally_schema (version) values (3)');
    for (const { sql } of migrations.slice(0, 3)) await client.query(sql);
    const teams = [uuidV7(1_000), uuidV7(2_000)];
    for (const [i, teamId] of teams.entries()) {
      await client.query('insert into teams values ($1, $2, 1)', [teamId, `team ${i}`]);
      await fillTeam(client, teamId);
    }
    return { url, teams };
  } finally {
    await client.end();
  }
}

async function fillTeam(client: pg.Client, teamId: string): Promise<void> {
  const packed = encodePayload(long);
  assert.ok(packed.isZstd);
  const times = Array.from({ length: total }, (_, i) => firstUs + i * 600_000_000);
  await client.query(
    `insert into traces (team_id, id, seq, created_at_us, cost_usd, prompt_tokens, completion_tokens, latency_ms,
       zstd_mask, is_error, model, feature_name, user_identifier, error_message, input, output, response_model)
     select $1, u.id, u.seq, u.us, (u.seq % 100) / 4.0 + 0.000000000007, u.seq % 50, null, case when u.seq % 3 = 0 then u.seq end,
       case when u.seq % 2 = 0 then 1 else 0 end, u.seq % 10 = 0, 'm' || u.seq % 7, case when u.seq % 4 = 0 then 'f' end,
       'u' || u.seq % 90, null, case when u.seq % 2 = 0 then $4::bytea end, case when u.seq % 5 = 0 then 'out'::bytea end,
       'exact'
     from unnest($2::uuid[], $3::bigint[]) with ordinality as u(id, us, seq)`,
    [teamId, times.map((us) => uuidV7(us)), times, packed.bytes],
  );
  await client.query('insert into team_counters values ($1, 1, $2, $3)', [
    teamId,
    total,
    times.at(-1),
  ]);
  const dimensions = ["''", 'model', 'feature_name', 'user_identifier'];
  for (const [i, name] of dimensions.entries()) {
    for (const bucket of ['-1', `floor(created_at_us / ${day}.0)::integer`]) {
      await client.query(
        `insert into rollups select team_id, ${i}, ${bucket}, ${name}, ${measures} from traces
         where team_id = $1 and ${name} is not null group by 1, 3, 4`,
        [teamId],
      );
    }
  }
}

/** The sums of the old table, as text: dimension, day and name, then the sums. */
async function oldSums(url: string, teamId: string): Promise<string[]> {
  const rows = await postgres.sql(
    url,
    `select concat_ws(' ', dimension, day, key, calls, errors, latency_sum, latency_count, prompt_tokens,
       completion_tokens, cost_micros::numeric * 1000000 + cost_picos) as text
     from rollups where team_id = $1 and (day = -1 or dimension = 0)`,
    [teamId],
  );
  return rows.map(({ text }) => String(text)).sort();
}

function sumsOf(dimension: number, bucket: number, { group, measures: sums }: Tally): string {
  const { calls, errors, latency_sum, latency_count, prompt_tokens, completion_tokens } = sums;
  const counts = [calls, errors, latency_sum, latency_count, prompt_tokens, completion_tokens];
  return [dimension, bucket, group[0] ?? '', ...counts, sums.cost_picos].join(' ');
}

const open = (url: string, onUpgrade: (progress: UpgradeProgress) => void = () => {}) =>
  openPostgresStore({ url, clock: { kind: 'system' }, role: 'server', onUpgrade });

test('sums and traces are the same before and after an upgrade, and progress is reported', async () => {
  const { url, teams } = await oldDatabase();
  const before = await Promise.all(teams.map((teamId) => oldSums(url, teamId)));
  assert.ok((before[0]?.length ?? 0) > 100);
  const steps: UpgradeProgress[] = [];
  const store = await open(url, (progress) => void steps.push(progress));
  try {
    for (const [i, teamId] of teams.entries()) {
      const after: string[] = [];
      const daily = await talliesOf(store, teamId, { ...overviewQuery, interval: 'day' });
      for (const tally of await talliesOf(store, teamId, overviewQuery))
        after.push(sumsOf(0, -1, tally));
      for (const tally of daily) after.push(sumsOf(0, (tally.startUs ?? 0) / day, tally));
      for (const [j, field] of (['model', 'feature_name', 'user_identifier'] as const).entries()) {
        const groups = await groupsOf(store, teamId, field);
        after.push(
          ...groups
            .filter(({ group }) => group[0] !== null)
            .map((tally) => sumsOf(j + 1, -1, tally)),
        );
      }
      assert.deepEqual(after.sort(), before[i]);
      assert.deepEqual(await verifyTeam(store, teamId), { traces: total, differences: [] });
      assert.deepEqual((await store.marks(teamId)).rolledSeq, { hot: total, wide: total });
      const [second, , , , , , , , , tenth] = await store.range(teamId, { firstSeq: 1, count: 10 });
      assert.deepEqual(
        [second?.input, second?.output, second?.response_model],
        [null, null, 'exact'],
      );
      assert.deepEqual([tenth?.input, tenth?.output, tenth?.status], [long, 'out', 'error']);
    }
    assert.deepEqual(await store.checkStorage(), []);
    const moved = steps.filter(({ step }) => step === 'moving traces');
    assert.deepEqual(moved.at(-1), { step: 'moving traces', done: 2 * total, total: 2 * total });
    assert.deepEqual(steps.at(-1), { step: 'adding up', done: 4 * total, total: 4 * total });
    const left = await postgres.sql(url, "select 1 from pg_class where relname like 'old_%'");
    assert.deepEqual(left, []);
  } finally {
    await store.close();
  }
});

test('an upgrade that is killed after any step continues with the next start', async () => {
  const { url, teams } = await oldDatabase();
  let kills = 0;
  for (;;) {
    // Each start comes one step further than the last.
    const process_ = spawn(process.execPath, [child, url, '1'], {
      stdio: 'inherit',
      timeout: 60_000,
    });
    const [status, signal] = (await once(process_, 'exit')) as [number | null, string | null];
    if (status === 0) break;
    assert.equal(signal, 'SIGKILL');
    kills += 1;
    assert.ok(kills < 50, 'the upgrade makes no progress');
    // An older version would refuse the database from here on.
    assert.deepEqual(await postgres.sql(url, 'select version from tracetally_schema'), [
      { version: migrations.length },
    ]);
  }
  assert.ok(kills >= 8, `only ${kills} steps`);
  const store = await open(url);
  for (const teamId of teams) {
    assert.deepEqual(await verifyTeam(store, teamId), { traces: total, differences: [] });
  }
  await store.close();
});

test('several servers that start at once upgrade a database once', async () => {
  const { url, teams } = await oldDatabase();
  const stores = await Promise.all(Array.from({ length: 4 }, () => open(url)));
  try {
    for (const teamId of teams) {
      for (const store of stores) {
        assert.deepEqual(await verifyTeam(store, teamId), { traces: total, differences: [] });
      }
    }
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
});

test('a server of an older version that still runs fails instead of writing the old way', async () => {
  const { url, teams } = await oldDatabase();
  const old = new pg.Client({ connectionString: url });
  await old.connect();
  try {
    const insert = {
      name: 'prepared',
      text: `insert into traces (team_id, id, seq, created_at_us, zstd_mask, is_error, model)
             values ($1, gen_random_uuid(), $2, 1, 0, false, 'm')`,
    };
    await old.query('begin');
    await old.query({ ...insert, values: [teams[0], total + 1] });
    await old.query('rollback');
    await (await open(url)).close();
    await assert.rejects(
      old.query({ ...insert, values: [teams[0], total + 2] }),
      /column "zstd_mask" of relation "traces" does not exist/,
    );
    await assert.rejects(
      old.query('select calls from rollups'),
      /relation "rollups" does not exist/,
    );
  } finally {
    await old.end();
  }
});

test('the sums of a database of schema 4 are built again, and answers are complete meanwhile', async () => {
  const url = await postgres.createDatabase();
  const before = await open(url);
  const { team } = await before.ensureTeam('t', 1);
  const drafts = Array.from({ length: 900 }, (_, i) => draftTrace({ model: `m${i % 3}` }));
  await before.append([{ teamId: team.id, drafts }]);
  await before.close();
  // The only differences of schema 4 to the present one.
  await postgres.sql(url, 'alter table traces drop column cost_source');
  await postgres.sql(url, 'drop table price_entries, reprice_runs, ended_sessions');
  await postgres.sql(url, 'alter table team_counters drop column fence');
  await postgres.sql(url, 'alter table rollup_rows drop column latencies');
  await postgres.sql(url, 'update team_marks set hot_seq = 900, wide_seq = 900');
  await postgres.sql(url, 'update tracetally_schema set version = 4');

  const store = await open(url);
  try {
    const [sum] = await talliesOf(store, team.id, overviewQuery);
    assert.equal(sum?.measures.calls, 900);
    await eventually('the sums are built', 120_000, async () => {
      const { hot, wide } = (await store.marks(team.id)).rolledSeq;
      return hot === 900 && wide === 900;
    });
    assert.deepEqual(await verifyTeam(store, team.id), { traces: 900, differences: [] });
  } finally {
    await store.close();
  }
});
