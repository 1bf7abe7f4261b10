import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { calendarOf } from '../../src/core/calendar.ts';
import type { TallyQuery } from '../../src/core/query.ts';
import { columnOf } from '../../src/core/trace-fields.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { SumList } from '../../src/query/sums.ts';
import type { SumRow } from '../../src/query/sums.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { listedSums } from '../../src/store/postgres/sums-statements.ts';
import { plannedSums } from '../../src/store/postgres/tally-reader.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { changeCosts } from '../support/changed-costs.ts';
import { usePostgres } from '../support/postgres.ts';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';

const postgres = usePostgres();

const answers = 200;
const dayUs = 86_400_000_000;
const firstUs = Date.UTC(2026, 0, 28) * 1000;
const calendar = calendarOf('UTC');
const days = (from: number, to: number) => ({
  fromUs: firstUs + from * dayUs,
  toUs: firstUs + to * dayUs,
});
const ever: TallyQuery = { filter: {}, groupBy: [], range: null, interval: null };

/** They need every grain, and the last one the traces at both ends of its range. */
const questions: readonly TallyQuery[] = [
  ever,
  { ...ever, groupBy: ['model'] },
  { ...ever, groupBy: ['status', 'model'], range: days(1, 20) },
  { ...ever, groupBy: ['model'], range: days(0.5, 9.25), interval: 'day' },
  { ...ever, groupBy: ['user_identifier'], range: days(2, 18), interval: 'day' },
  { ...ever, groupBy: ['user_identifier'], filter: { user_identifier: ['u1', 'u2', null] } },
  { ...ever, groupBy: ['user_identifier'], range: days(0.5, 9.25) },
];

const eventTime = 'coalesce(started_at_us, created_at_us)';

/** The sums of the traces themselves. */
function plainSums({ groupBy, range, interval, filter }: TallyQuery): string {
  const fields = groupBy.map((field) =>
    field === 'status' ? "case when is_error then 'error' else 'success' end" : columnOf(field),
  );
  const start = interval === null ? 'null' : `(${eventTime} / ${dayUs} * ${dayUs})`;
  const within = range
    ? `and ${eventTime} >= ${range.fromUs} and ${eventTime} < ${range.toUs}`
    : '';
  const ofUsers = filter.user_identifier
    ? `and coalesce(user_identifier, 'u1') in ('u1', 'u2')`
    : '';
  return `
    select ${start}::text as start, array[${fields.join(', ')}]::text[] as values, count(*) as calls,
      sum(case when is_error then 1 else 0 end) as errors, count(*) - count(cost_usd) as uncosted,
      sum(coalesce(cost_micros, 0)) as micros, coalesce(sum(latency_ms), 0) as latency
    from traces where team_id = $1 ${within} ${ofUsers}
    group by 1, 2`;
}

interface Compared {
  calls: number;
  /** Traces and changes that were not rolled up. */
  tail: number;
  changes: number;
}

/** Asks the question and adds up the traces in one snapshot. */
async function compare(client: pg.Client, teamId: string, query: TallyQuery): Promise<Compared> {
  const planned = plannedSums(query, calendar) ?? assert.fail('no rollups cover the question');
  const { text, values } = listedSums(teamId, planned, null, Number.MAX_SAFE_INTEGER);
  await client.query('begin isolation level repeatable read read only');
  const { rows } = await client.query<Record<string, unknown>>(text, values as unknown[]);
  const plain = await client.query<Record<string, string | null>>(plainSums(query), [teamId]);
  const behind = await client.query<{ tail: number; changes: number }>(
    `select (c.last_seq - m.seq)::integer as tail,
       (select count(*) from trace_changes l where l.team_id = $1 and l.change_no > m.change_no and l.seq <= m.seq)::integer as changes
     from roll_marks m join team_counters c using (team_id) where m.team_id = $1 and m.is_active`,
    [teamId],
  );
  await client.query('commit');
  const list = new SumList(query, calendar);
  for (const row of rows) {
    const [, , part, ...sums] = Object.values(row) as SumRow;
    if (part !== null) list.add(sums);
  }
  const found = list.all().map(({ group, startUs, measures: sums }) => {
    assert.equal(sums.cost_picos % 1_000_000n, 0n);
    const added = [sums.calls, sums.errors, sums.uncosted_calls, sums.cost_picos / 1_000_000n];
    return [startUs === null ? null : String(startUs), group, [...added, sums.latency_sum].join()];
  });
  const expected = plain.rows
    .filter(({ calls }) => calls !== '0')
    .map(({ start, values: group, calls, errors, uncosted, micros, latency }) => [
      start,
      group,
      [calls, errors, uncosted, micros, latency].join(),
    ]);
  const inOrder = (sums: unknown[][]) => sums.map((sum) => JSON.stringify(sum)).sort();
  assert.deepEqual(inOrder(found), inOrder(expected), JSON.stringify(query));
  const calls = list.all().reduce((sum, { measures }) => sum + measures.calls, 0);
  const { tail = 0, changes = 0 } = behind.rows[0] ?? {};
  return { calls, tail, changes };
}

test('beside rolls, writes and changes of costs every answer is the sum of the traces at one moment', async (t) => {
  const seed = chooseSeed();
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const url = await postgres.createDatabase();
  await using closing = new AsyncDisposableStack();
  const stores = [];
  for (let i = 0; i < 3; i++) {
    const store = await openPostgresStore({
      url,
      clock: { kind: 'system' },
      role: 'server',
      rolling: 'manual',
    });
    closing.defer(() => store.close());
    stores.push(store);
  }
  const [store = assert.fail(), ...rollers] = stores;
  const { team } = await store.ensureTeam('t', 1);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  closing.defer(() => client.end());
  let [stored, rolled, changed, isDone] = [0, 0, 0, false];

  const write = async () => {
    const drafts = Array.from({ length: 23 }, () =>
      draftTrace({
        model: `m${Math.floor(random() * 5)}`,
        status: random() < 0.2 ? 'error' : 'success',
        user_identifier: random() < 0.1 ? null : `u${Math.floor(random() * 9)}`,
        latency_ms: random() < 0.2 ? null : Math.floor(random() * 5_000),
        cost_usd: random() < 0.2 ? null : Math.floor(random() * 1e6) / 1e6,
        started_at: new Date((firstUs + random() * 21 * dayUs) / 1000).toISOString(),
      }),
    );
    const [outcome] = await store.append([{ teamId: team.id, drafts }]);
    assert.equal(outcome?.kind, 'stored', JSON.stringify(outcome));
    stored += drafts.length;
  };
  const reprice = async () => {
    const from = Math.floor(random() * Math.max(1, stored - 60));
    const costs = [null, 0, 0.000001, 0.25, 3];
    changed += await changeCosts(store, team.id, [from, Math.min(stored, from + 60)], () => {
      return costs[Math.floor(random() * costs.length)] ?? null;
    });
  };
  const untilDone = async (work: () => Promise<void>) => {
    while (!isDone) await work();
  };
  await write();
  const others = [
    untilDone(write),
    untilDone(reprice),
    ...rollers.map((roller, i) =>
      untilDone(async () => void (rolled += await roller.roll(team.id, i === 0 ? 37 : 500))),
    ),
  ];
  const seen = { withTail: 0, withChanges: 0 };
  try {
    for (let i = 0; i < answers; i++) {
      const query = questions[i % questions.length] ?? ever;
      const { tail, changes } = await compare(client, team.id, query);
      if (tail > 0) seen.withTail += 1;
      if (changes > 0) seen.withChanges += 1;
    }
  } finally {
    isDone = true;
    await Promise.all(others);
  }
  t.diagnostic(JSON.stringify({ stored, rolled, changed, ...seen }));
  assert.ok(rolled > 0 && changed > 0 && seen.withTail > 0 && seen.withChanges > 0);
  for (const query of questions) await compare(client, team.id, query);
  for (let rows = -1; rows !== 0;) rows = await store.roll(team.id, 10_000);
  for (const query of questions) {
    assert.equal((await compare(client, team.id, query)).tail, 0);
  }
  assert.deepEqual(await verifyTeam(store, team.id), { traces: stored, differences: [] });
});
