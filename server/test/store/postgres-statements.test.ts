import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'libpg-query';
import {
  ofOneTeam,
  ofSmallTables,
  overAllTeams,
  readDown,
  readDownStatements,
} from '../../src/store/postgres/statements.ts';
import { payloadNames } from '../../src/core/trace-fields.ts';
import { distributedTables, statementKinds, unboundTables } from './statement-rules.ts';

test('every statement of one team names it in every reference to a distributed table', async () => {
  assert.ok(Object.keys(ofOneTeam).length > 15);
  for (const [name, text] of [...Object.entries(ofOneTeam), ...readDownStatements]) {
    assert.deepEqual(unboundTables(await parse(text)), [], name);
  }
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
      const text = readDown({ page: 1, limit: 1, ...order });
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

test('what asks over all teams only reads, and the small tables need no team', async () => {
  for (const text of Object.values(overAllTeams)) {
    assert.deepEqual(statementKinds(await parse(text)), ['SelectStmt']);
  }
  for (const [name, text] of Object.entries(ofSmallTables)) {
    assert.deepEqual(unboundTables(await parse(text)), [], name);
  }
});

test('no other file of the store holds a statement on a distributed table', () => {
  const folder = new URL('../../src/store/postgres/', import.meta.url);
  const names = [...distributedTables].join('|');
  const pattern = new RegExp(`\\b(from|into|update|join)\\s+(${names})\\b`, 'i');
  const files = globSync('*.ts', { cwd: folder });
  const found = files.filter((path) => pattern.test(readFileSync(new URL(path, folder), 'utf8')));
  assert.deepEqual(found, ['statements.ts']);
});
