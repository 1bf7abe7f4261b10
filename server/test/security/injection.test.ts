import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { inParallel, toolOn } from '../cli/helpers.ts';
import { bearer, jsonType, send } from '../http/helpers.ts';
import { startTestService } from '../support/service.ts';
import type { KeyHolder, TestService } from '../support/service.ts';
import { assertVerified, assertServes, exchange, totalOf, writeRequest } from './helpers.ts';

/** What breaks a statement that is glued together, or a pattern, a path, a template or a terminal. */
const injections = [
  "'",
  '"',
  '`',
  "''; drop table traces; --",
  "'; delete from traces; --",
  "' or '1'='1",
  "' or 1=1 --",
  "x' union select hash, prefix, name, 4 from api_keys --",
  '" union select * from teams --',
  "'); insert into teams (id, name) values ('x', 'y'); --",
  "'||(select hash from api_keys limit 1)||'",
  "' and randomblob(1000000000) --",
  '; attach database "/tmp/evil.db" as evil; --',
  '/* comment */ or /**/ 1',
  '-- comment',
  '%',
  '_%_',
  '*?[a-z]',
  '?1 :name @name $name',
  String.raw`\' or 1=1 --`,
  String.raw`\x27\u0027\\`,
  'char(0x27)||x',
  '%27%20or%201=1',
  '${7*7} {{7*7}} <%= 7*7 %>',
  '\u02bc or \uff07 or \u2019',
  "null'\u0000; drop table teams; --",
  "line\r\nbreak'; drop table teams; --",
];
const isControlled = (text: string): boolean => /\p{Cc}/u.test(text);

let service: TestService;
let team: KeyHolder;
let bystander: KeyHolder;
let bystanderSees: string;

before(async () => {
  service = await startTestService({ flags: { 'trust-proxy': '127.0.0.1' } });
  team = await service.keyFor('injectors');
  bystander = await service.keyFor('bystanders');
  for (const model of ['a', 'b']) {
    await service.call(bystander.key, 'POST', '/traces', { model, feature_name: 'f', cost_usd: 1 });
  }
  bystanderSees = await everythingOf(bystander);
});
after(() => service.stop());

async function everythingOf({ key }: KeyHolder): Promise<string> {
  const analytics = ['overview', 'by-model', 'by-feature', 'daily'].map((n) => `/analytics/${n}`);
  const texts: string[] = [];
  for (const path of ['/traces', ...analytics]) {
    texts.push((await service.call(key, 'GET', path)).text);
  }
  return texts.join('\n');
}

/** No other team has changed, and the rollups are right. */
async function assertUntouched(): Promise<void> {
  assert.equal(await everythingOf(bystander), bystanderSees);
  await assertVerified(service, [
    [bystander, 2],
    [team, await totalOf(service, team)],
  ]);
}

describe('an injection is stored as it was written, or refused', () => {
  const labels = ['model', 'feature_name', 'user_identifier'];
  for (const field of [...labels, 'input', 'output', 'error_message']) {
    test(`in ${field}`, async () => {
      for (const text of injections) {
        const before = await totalOf(service, team);
        const sent = { model: 'm', [field]: text };
        const created = await service.call(team.key, 'POST', '/traces', sent);
        if (labels.includes(field) && isControlled(text)) {
          assert.equal(created.status, 422, text);
          assert.equal(await totalOf(service, team), before);
          continue;
        }
        assert.equal(created.status, 201, text);
        const found = await service.call(team.key, 'GET', `/traces/${created.json.id}`);
        assert.equal(found.json[field], text);
        assert.equal(await totalOf(service, team), before + 1);
      }
      await assertUntouched();
    });
  }
  test('in status, in numbers and in names of fields', async () => {
    for (const text of injections) {
      for (const field of ['status', 'cost_usd', 'latency_ms', 'prompt_tokens']) {
        const sent = { model: 'm', [field]: text };
        assert.equal((await service.call(team.key, 'POST', '/traces', sent)).status, 422, text);
      }
      const named = { model: 'named', [text]: text, [`model${text}`]: text };
      const created = await service.call(team.key, 'POST', '/traces', named);
      assert.deepEqual([created.status, created.json.model], [201, 'named'], text);
    }
    await assertUntouched();
  });
  test('in labels that the analytics then group by', async () => {
    const fresh = await service.keyFor();
    const names = injections.filter((text) => !isControlled(text));
    for (const name of names) {
      const sent = { model: name, feature_name: name, cost_usd: 0.5 };
      assert.equal((await service.call(fresh.key, 'POST', '/traces', sent)).status, 201);
    }
    for (const [path, field] of [
      ['/analytics/by-model', 'model'],
      ['/analytics/by-feature', 'feature_name'],
    ] as const) {
      const { json } = await service.call(fresh.key, 'GET', path);
      const seen = json.map((record: Record<string, unknown>) => record[field]);
      assert.deepEqual(seen.sort(), [...names].sort());
      for (const { call_count, total_cost_usd } of json) {
        assert.deepEqual([call_count, total_cost_usd], [1, 0.5]);
      }
    }
    await assertVerified(service, [[fresh, names.length]]);
  });
});

test('an injection in the query is refused, whatever the name of the parameter', async () => {
  for (const text of injections) {
    const value = encodeURIComponent(text);
    for (const name of ['page', 'limit', 'omit']) {
      for (const written of [value, `1${value}`, `input${value}`]) {
        const answer = await service.call(team.key, 'GET', `/traces?${name}=${written}`);
        assert.equal(answer.status, 422, `${name}=${written}`);
      }
    }
    for (const name of ['order', 'sort', 'where', 'team_id', value]) {
      const answer = await service.call(team.key, 'GET', `/traces?${name}=${value}`);
      assert.equal(answer.status, 422, `${name}=${value}`);
    }
  }
  await assertUntouched();
});

test('an injection in the path leads nowhere', async () => {
  const { json } = await service.call(team.key, 'GET', '/traces?limit=1');
  const id: string = json.traces[0].id;
  for (const text of injections) {
    const value = encodeURIComponent(text);
    for (const path of [`/traces/${value}`, `/traces/${id}${value}`, `/analytics/${value}`]) {
      assert.equal((await service.call(team.key, 'GET', path)).status, 404, path);
    }
  }
  await assertUntouched();
});

test('an injection in the key or in the address is a key or an address that does not exist', async () => {
  let count = 0;
  for (const text of injections.filter((one) => /^[\x20-\x7e]+$/.test(one))) {
    count += 1;
    for (const key of [text, `${bystander.key}${text}`, `${text}${bystander.key}`]) {
      const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': `10.7.0.${count}` };
      const answer = await send(service.url, { path: '/traces', headers });
      assert.equal(answer.status, 401, key);
    }
    const spoofed = { ...bearer(team.key), 'x-forwarded-for': text, ...jsonType };
    assert.equal((await send(service.url, { path: '/traces', headers: spoofed })).status, 200);
  }
  assert.ok(count >= 20);
  await assertUntouched();
});

test('names that the command line takes are stored as they were written', async () => {
  const tool = toolOn(service.databasePath);
  const names = injections.filter((text) => !text.includes('\0') && !isControlled(text));
  const chosen = names.filter((_, i) => i % 3 === 0);
  const teamsBefore = (await service.beside.teams(0)).length;
  await inParallel(chosen, async (name) => {
    const made = await tool.run('keys', 'create', `--team=${name}`, `--name=${name}`, '--json');
    assert.equal(made.code, 0, made.stderr);
    const { key, team: teamName, name: keyName } = JSON.parse(made.stdout);
    assert.deepEqual([teamName, keyName], [name, name]);
    assert.equal((await service.call(key, 'GET', '/traces')).json.total, 0);
  });
  const teams = await service.beside.teams(0);
  assert.equal(teams.length, teamsBefore + chosen.length);
  const stored = new Set(teams.map(({ name }) => name));
  for (const name of chosen) assert.ok(stored.has(name), name);

  const live = async (): Promise<number> =>
    (await service.beside.keys(null)).filter((key) => key.revokedAtUs === null).length;
  const before = await live();
  await inParallel(
    [
      ['keys', 'revoke', "x' or '1'='1"],
      ['keys', 'rotate', "' or 1=1 --"],
      ['keys', 'revoke', '%'],
      ['verify', '--team', "' or 2=2 --"],
    ],
    async (args) => assert.equal((await tool.run(...args)).code, 1, args.join(' ')),
  );
  assert.equal(await live(), before, 'no key was revoked');
  await assertUntouched();
});

const knownHeaders = new Set(
  (
    'x-request-id x-content-type-options cache-control content-type content-length date connection ' +
    'keep-alive location www-authenticate allow retry-after transfer-encoding'
  ).split(' '),
);

test('line breaks in a value make no header of the answer', async () => {
  const breaks = [
    ['%0d%0aset-cookie:%20evil=1', '%0aset-cookie:evil', '%E5%98%8A%E5%98%8Dset-cookie:evil'],
    ['%0d%0a%0d%0a<script>evil</script>', '%0D%0ALocation:%20http://evil.example/'],
  ].flat();
  for (const text of breaks) {
    const raw = decodeURIComponent(text);
    const body = JSON.stringify({ model: 'm', input: raw, error_message: raw });
    const key = team.key;
    const requests = [
      writeRequest({ path: `/traces/${text}`, key, isLast: true }),
      writeRequest({ path: `/${text}`, key, isLast: true }),
      writeRequest({ path: `/traces?page=${text}`, key, isLast: true }),
      writeRequest({ method: 'DELETE', path: `/traces/${text}`, key, isLast: true }),
      writeRequest({ method: 'POST', path: `/traces?${text}`, key, body, isLast: true }),
      writeRequest({ path: '/traces', key, headers: [`x-request-id: ${text}`], isLast: true }),
      writeRequest({ path: '/traces', headers: [`authorization: Bearer ${text}`], isLast: true }),
      writeRequest({ path: '/healthz', headers: [`x-request-id: a\r\n b${text}`], isLast: true }),
    ];
    for (const bytes of requests) {
      const said = (await exchange(service.url, bytes)).toString('latin1');
      const head = said.split('\r\n\r\n', 1)[0] ?? '';
      const names = head.split('\r\n').slice(1);
      assert.ok(names.length >= 4, said);
      for (const line of names) {
        assert.ok(knownHeaders.has(line.split(':')[0]?.toLowerCase() ?? ''), line);
      }
      assert.ok(!head.includes('evil') && !head.includes('%0'), head);
    }
  }
});

test('after all of this the service serves', () => assertServes(service, team));
