import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'libpg-query';
import {
  lookUpStatements,
  ofOneTeam,
  overAllTeams,
  listStatement,
  readChosenStatements,
  readDownStatements,
} from '../../src/store/postgres/statements.ts';
import { calendarOf } from '../../src/core/calendar.ts';
import type { TallyQuery } from '../../src/core/query.ts';
import { planQuery } from '../../src/core/query-plan.ts';
import { payloadNames } from '../../src/core/trace-fields.ts';
import { claimStatement, removeStatement } from '../../src/store/postgres/call-tokens.ts';
import { clusterFunction, plainFunction } from '../../src/store/postgres/store-function.ts';
import { ofRepricing, readCostStatements } from '../../src/store/postgres/reprice-statements.ts';
import { dialect, withDollars } from '../../src/store/postgres/sql.ts';
import { runStatements } from '../../src/store/reprice-runs.ts';
import { readTeams } from '../../src/store/team-table.ts';
import { ofChanges, ofMarks, ofRollups } from '../../src/store/postgres/rollup-statements.ts';
import {
  payloadsOf,
  seqsAmong,
  seqsBetween,
  seqsInRange,
  timesOf,
} from '../../src/store/postgres/search-statements.ts';
import { listedSums, rankedSums, sumsForCursor } from '../../src/store/postgres/sums-statements.ts';
import { tracesOf } from '../../src/store/postgres/tally-statements.ts';
import { distributedTables, statementKinds, unboundTables } from './statement-rules.ts';

test('every statement of one team names it in every reference to a distributed table', async () => {
  assert.ok(Object.keys(ofOneTeam).length > 10);
  const statements = [
    ...Object.entries(ofOneTeam),
    ['claim', claimStatement] as const,
    ...Object.entries(ofMarks),
    ...Object.entries(ofChanges),
    ...Object.entries(ofRollups),
    ...Object.entries(ofRepricing),
    ...Object.entries(runStatements).map(([name, text]) => [name, withDollars(text)] as const),
    ...Object.entries(readCostStatements),
    ...Object.entries(lookUpStatements),
    ...readDownStatements,
    ...readChosenStatements,
  ];
  for (const [name, text] of statements) {
    assert.deepEqual(unboundTables(await parse(text)), [], name);
  }
});

test('so does every statement that is built from a query', async () => {
  const teamId = '0'.repeat(32);
  const range = { fromUs: 0, toUs: 86_400_000_000 };
  const queries: TallyQuery[] = [
    { filter: {}, groupBy: [], range: null, interval: null },
    { filter: { model: 'set' }, groupBy: ['model'], range, interval: 'hour' },
    {
      filter: { model: ['a', null], status: ['error'] },
      groupBy: ['status'],
      range,
      interval: 'day',
    },
    { filter: { user_identifier: ['a'] }, groupBy: [], range: null, interval: null },
    { filter: { run_id: ['a'], status: 'set' }, groupBy: ['model'], range, interval: 'week' },
  ];
  let planned = 0;
  for (const query of queries) {
    const plan = planQuery(query, calendarOf('UTC'));
    const statements = [tracesOf(teamId, query)];
    if (plan.kind === 'rollups') {
      planned += 1;
      const question = { query, ...plan, covered: range, edges: [range] };
      const whole = { ...question, query: { ...query, groupBy: [] } };
      const order = { by: 'call_count', isDescending: true } as const;
      statements.push(listedSums(teamId, question, 9, 9));
      statements.push(listedSums(teamId, question, null, 9));
      statements.push(sumsForCursor(teamId, question));
      statements.push(rankedSums(teamId, question, whole, order, 9, 9));
      statements.push(rankedSums(teamId, question, null, { ...order, by: 'p95_latency_ms' }, 9, 9));
    }
    for (const { text, values } of statements) {
      assert.deepEqual(unboundTables(await parse(text)), [], text);
      assert.equal(values[0], teamId);
    }
  }
  assert.ok(planned > 2 && planned < queries.length);
});

test('so does every statement of a search, and of a question about a value that is looked up', async () => {
  const teamId = '0'.repeat(32);
  const range = { fromUs: 0, toUs: 86_400_000_000 };
  const filter = { model: ['a', null], status: ['error'] };
  const criteria = { filter, range, minimums: { latency_ms: 5 }, text: 'x' };
  const metadata = { tier: ['gold'] };
  const lookedUp = { filter: { session_id: ['a'] }, groupBy: [], range, interval: null };
  for (const { text, values } of [
    seqsInRange(teamId, range, 9),
    seqsBetween(teamId, criteria, 9, 1),
    seqsAmong(teamId, criteria, [1, 2]),
    payloadsOf(teamId, ['input', 'metadata'], [1, 2]),
    timesOf(teamId, [1, 2]),
    tracesOf(teamId, { ...lookedUp, metadata }),
    tracesOf(teamId, { ...lookedUp, filter, metadata }),
  ]) {
    assert.deepEqual(unboundTables(await parse(text)), [], text);
    assert.equal(values[0], teamId);
  }
});

test('a question without values in its filter is prepared, also if a field must be set', () => {
  const query: TallyQuery = { filter: {}, groupBy: ['model'], range: null, interval: null };
  const isPrepared = (filter: TallyQuery['filter']): boolean => {
    const plan = planQuery({ ...query, filter }, calendarOf('UTC'));
    assert.equal(plan.kind, 'rollups');
    if (plan.kind !== 'rollups') return false;
    const question = { query: { ...query, filter }, ...plan, covered: null, edges: [] };
    return listedSums('0'.repeat(32), question, 9, 9).isPrepared;
  };
  assert.equal(isPrepared({}), true);
  assert.equal(isPrepared({ model: 'set' }), true);
  assert.equal(isPrepared({ model: ['m'] }), false);
  assert.equal(isPrepared({ model: 'set', feature_name: ['f'] }), false);
});

test('the function that stores traces names one team in every reference, except where a cluster copies many rows', async () => {
  const texts = await Promise.all(
    [plainFunction, clusterFunction].map(async ({ create }) => {
      const tree = await parse(create);
      assert.deepEqual(statementKinds(tree), ['CreateFunctionStmt']);
      return create;
    }),
  );
  for (const text of texts) {
    const tables = [...distributedTables].join('|');
    const found = [...text.matchAll(new RegExp(`\\b(from|into|update) (${tables}) ([^;]*);`, 'g'))];
    assert.ok(found.length > 8);
    for (const [statement, , table] of found) {
      const isOfTeam = /team_id = team\b|values \((team|first_team|u\.team_id), /.test(statement);
      const copies = /from unnest\(new_(requests|traces|payloads)\)/.test(statement);
      assert.ok(isOfTeam || copies, `${table}: ${statement}`);
    }
  }
});

test('expired tokens of all teams are removed by one statement, which no write waits for', async () => {
  assert.deepEqual(unboundTables(await parse(removeStatement)), ['store_calls']);
});

test('every combination of omitted payloads has a statement of its own among those that are checked', () => {
  const checked = new Set(readDownStatements.values());
  assert.equal(checked.size, 2 * 2 ** payloadNames.length);
  for (let mask = 0; mask < 2 ** payloadNames.length; mask++) {
    const omit = payloadNames.filter((_, bit) => (mask & (1 << bit)) !== 0);
    for (const order of [omit, omit.toReversed()].flatMap((one) => [
      { omit: new Set(one), previewChars: null },
      { omit: new Set(one), previewChars: 9 },
    ])) {
      const text = listStatement(readDownStatements, { limit: 1, ...order });
      assert.ok(checked.has(text), [...order.omit].join());
      for (const name of payloadNames) {
        assert.equal(new RegExp(`\\b${name}\\b`).test(text), !omit.includes(name), name);
      }
    }
  }
});

test('the rule finds a reference that is not bound, wherever it hides', async () => {
  const planted = {
    'select 1 from traces': ['traces'],
    'select 1 from traces where team_id = $2': ['traces'],
    'select 1 from traces where seq = $1': ['traces'],
    'select 1 from traces where team_id = $1 or true': ['traces'],
    'select 1 from traces where team_id > $1': ['traces'],
    'select 1 from traces t join rollups r on r.team_id = t.team_id where t.team_id = $1': [
      'rollups',
    ],
    'select 1 from traces t, rollups r where team_id = $1': ['traces', 'rollups'],
    'select 1 from traces where team_id = $1 and id in (select id from rollups)': ['rollups'],
    'select (select count(*) from traces) from rollups where team_id = $1': ['traces'],
    'select 1 from team_counters c, lateral (select 1 from traces t where t.team_id = c.team_id) x where c.team_id = $1':
      ['traces'],
    'select 1 from traces t left join trace_payloads p on p.seq = t.seq where t.team_id = $1': [
      'trace_payloads',
    ],
    'select 1 from traces t left join trace_payloads p on t.team_id = $1 and p.seq = t.seq': [
      'trace_payloads',
      'traces',
    ],
    'with x as (select * from traces) select 1 from x': ['traces'],
    'select 1 from traces where team_id = $1 union select 1 from traces': ['traces'],
    'update team_counters set last_seq = $1': ['team_counters'],
    'delete from idempotency where key_hash = $1': ['idempotency'],
    'insert into traces (team_id) values ($2)': ['traces'],
    'insert into traces (team_id) select * from unnest($1::uuid[])': ['traces'],
    'insert into traces (id, team_id) select c.team_id, u from team_counters c, unnest($2::uuid[]) u where c.team_id = $1':
      ['traces'],
  };
  for (const [text, tables] of Object.entries(planted)) {
    assert.deepEqual(unboundTables(await parse(text)).sort(), tables.sort(), text);
  }
});

test('what asks over all teams only reads', async () => {
  for (const text of [...Object.values(overAllTeams), withDollars(readTeams(dialect))]) {
    assert.deepEqual(statementKinds(await parse(text)), ['SelectStmt']);
  }
});

test('no other file of the store holds a statement on a distributed table', () => {
  const folder = new URL('../../src/store/', import.meta.url);
  const names = [...distributedTables].join('|');
  const pattern = new RegExp(`\\b(from|into|update|join)\\s+(${names})\\b`, 'i');
  const files = globSync('{*,postgres/*}.ts', { cwd: folder });
  const found = files.filter((path) => pattern.test(readFileSync(new URL(path, folder), 'utf8')));
  assert.deepEqual(found.sort(), [
    'postgres/call-tokens.ts',
    'postgres/reprice-statements.ts',
    'postgres/rollup-statements.ts',
    'postgres/search-statements.ts',
    'postgres/statements.ts',
    'postgres/store-function.ts',
    'postgres/sums-dialect.ts',
    'postgres/tally-statements.ts',
    'reprice-runs.ts',
    'team-table.ts',
  ]);
});
