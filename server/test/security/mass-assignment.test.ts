import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import { assertVerified, totalOf } from './helpers.ts';

let service: TestService;
let team: KeyHolder;
let victim: KeyHolder;
/** The service runs in this process, so what it pollutes is seen here. */
let prototypes: string;

before(async () => {
  service = await startTestService();
  team = await service.keyFor('attackers');
  victim = await service.keyFor('victims');
  await service.call(victim.key, 'POST', '/traces', { model: 'victim' });
  prototypes = describePrototypes();
});
after(() => service.stop());

function describePrototypes(): string {
  return [Object, Array, Function, String, Number, Map, Promise, Error]
    .map(({ prototype }) => Reflect.ownKeys(prototype).map(String).sort().join())
    .join('\n');
}

function post(text: string, query = '', headers: Record<string, string> = {}): Promise<Answer> {
  return service.call(team.key, 'POST', `/traces${query}`, text, headers);
}

/** A trace with only a model, without the fields that differ in each. */
function shown({ status, text, json }: Answer): object {
  assert.equal(status, 201, text.slice(0, 300));
  const { id, created_at, ...rest } = json;
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.ok(Date.parse(created_at) >= Math.floor(performance.timeOrigin), created_at);
  return rest;
}

const wantedId = '00000000-0000-7000-8000-000000000001';
const wantedTime = '2001-01-01T00:00:00.000000Z';

/** What the service assigns, under every name that it has here or might have elsewhere. */
function wishes(): [name: string, value: unknown][] {
  const named = (names: string, value: unknown) =>
    names.split(' ').map((name): [string, unknown] => [name, value]);
  return [
    ...named('id ID trace_id _id uuid', wantedId),
    ...named('team_id teamId caller_team_id', victim.teamId),
    ...named('team team_name', 'victims'),
    ...named('created_at createdAt date', wantedTime),
    ...named('createdAtUs created_at_us seq last_seq team_no teamNo is_error day dimension', 1),
    ...named('timesUs stamps', [1]),
    ...named('key api_key authorization', victim.key),
    ...named('key_id keyId', victim.keyId),
    ...named('scope role', 'full'),
    ...named('Status STATUS status\u00a0 errorMessage featureName', 'error'),
    ...named('cost_source costSource', 'computed'),
    ...named('costUsd latencyMs promptTokens zstd_mask calls total', 9),
    ...named('isError is_admin isAdmin', true),
    ...named('caller', { teamId: victim.teamId, scope: 'full' }),
  ];
}

/** The same field at every place that a careless server would read. */
const places: Readonly<Record<string, (name: string, value: unknown) => string>> = {
  'at the top': (name, value) => JSON.stringify({ model: 'm', [name]: value }),
  'before the model': (name, value) => JSON.stringify({ [name]: value, model: 'm' }),
  'inside a trace': (name, value) => JSON.stringify({ model: 'm', trace: { [name]: value } }),
  'inside $set': (name, value) => JSON.stringify({ model: 'm', $set: { [name]: value } }),
  'with a dotted name': (name, value) => JSON.stringify({ model: 'm', [`trace.${name}`]: value }),
  'with a bracket': (name, value) => JSON.stringify({ model: 'm', [`trace[${name}]`]: value }),
  'in __proto__': (name, value) => `{"model":"m","__proto__":${JSON.stringify({ [name]: value })}}`,
  'in constructor.prototype': (name, value) =>
    JSON.stringify({ model: 'm', constructor: { prototype: { [name]: value } } }),
};

describe('what the service assigns cannot be wished for', () => {
  for (const [place, write] of Object.entries(places)) {
    test(place, async () => {
      const [own, before] = [await totalOf(service, team), await totalOf(service, victim)];
      const plain = shown(await post('{"model":"m"}'));
      const list = wishes();
      for (const [name, value] of list) {
        assert.deepEqual(shown(await post(write(name, value))), plain, name);
      }
      assert.equal(await totalOf(service, team), own + 1 + list.length);
      assert.equal(await totalOf(service, victim), before);
      assert.equal((await service.call(team.key, 'GET', `/traces/${wantedId}`)).status, 404);
    });
  }
  test('in the query or in headers', async () => {
    const plain = shown(await post('{"model":"m"}'));
    const before = await totalOf(service, victim);
    for (const [name, value] of wishes()) {
      const text = encodeURIComponent(String(value));
      assert.deepEqual(shown(await post('{"model":"m"}', `?${name}=${text}`)), plain, name);
    }
    const headers = {
      'x-team-id': victim.teamId,
      'x-scope': 'full',
      'x-http-method-override': 'DELETE',
      'x-original-url': '/openapi.json',
      'x-api-key': victim.key,
      cookie: `team_id=${victim.teamId}`,
    };
    assert.deepEqual(shown(await post('{"model":"m"}', '', headers)), plain);
    assert.equal(await totalOf(service, victim), before);
    const query = `team_id=${victim.teamId}&team=victims&key=${victim.key}`;
    const listed = await service.call(
      team.key,
      'GET',
      `/traces?limit=100&${query}`,
      undefined,
      headers,
    );
    assert.equal(listed.status, 422);
    assert.ok(!listed.text.includes('victim'));
  });
});

const escaped = String.raw`\u005f\u005fproto\u005f\u005f`;
const poison = '{"polluted":"yes","model":"p","input":"p","status":"error","toJSON":1}';
const pollutingBodies: Readonly<Record<string, string>> = {
  'a plain __proto__': `{"model":"m","__proto__":${poison}}`,
  'constructor.prototype': `{"model":"m","constructor":{"prototype":${poison}}}`,
  'an escaped __proto__': `{"model":"m","${escaped}":${poison}}`,
  'a nested __proto__': `{"model":"m","a":{"b":[{"__proto__":{"__proto__":${poison}}}]}}`,
  'a nested constructor.prototype': `{"model":"m","a":{"constructor":{"prototype":${poison}}}}`,
  'an escaped constructor': `{"model":"m","c\\u006fnstructor":{"prot\\u006ftype":${poison}}}`,
  'a __proto__ that is no object': '{"model":"m","__proto__":null,"constructor":7,"prototype":[]}',
  'names of methods': '{"model":"m","toString":1,"valueOf":2,"hasOwnProperty":3,"toJSON":4}',
};
const pollutingQueries = [
  '__proto__[polluted]=yes&__proto__.polluted=yes&__proto__=yes',
  'constructor[prototype][polluted]=yes&constructor.prototype.polluted=yes',
  '%5f%5fproto%5f%5f[polluted]=yes&%5F%5Fproto%5F%5F%5Bpolluted%5D=yes',
  'a[__proto__][polluted]=yes&a[constructor][prototype][polluted]=yes',
  'toString=1&hasOwnProperty=1&then=1&length=5',
];

describe('no prototype of the server is polluted by', () => {
  function assertClean(): void {
    assert.equal(Reflect.get({}, 'polluted'), undefined);
    assert.equal(Reflect.get([], 'polluted'), undefined);
    assert.equal(
      Reflect.get(() => {}, 'polluted'),
      undefined,
    );
    assert.equal(describePrototypes(), prototypes);
  }
  for (const [what, text] of Object.entries(pollutingBodies)) {
    test(`${what} in the body`, async () => {
      const answer = await post(text);
      assertClean();
      assert.deepEqual(shown(answer), shown(await post('{"model":"m"}')));
    });
  }
  for (const query of pollutingQueries) {
    test(`the query ${query.slice(0, 30)}`, async () => {
      const listed = await service.call(team.key, 'GET', `/traces?${query}`);
      assert.equal(listed.status, 422);
      assert.equal((await post('{"model":"m"}', `?${query}`)).status, 201);
      assertClean();
    });
  }
  test('this very check, which sees a property that is planted', () => {
    Reflect.set(Object.prototype, 'polluted', 'yes');
    try {
      assert.throws(assertClean);
    } finally {
      Reflect.deleteProperty(Object.prototype, 'polluted');
    }
    assertClean();
  });
});

test('of a key that is written twice, also once in escapes, one and the same value is checked and stored', async () => {
  const pairs: [text: string, model: string | null][] = [
    [String.raw`{"model":"first","\u006dodel":"last"}`, 'last'],
    [String.raw`{"\u006dodel":"first","model":"last"}`, 'last'],
    [String.raw`{"model":"good","\u006dodel":7}`, null],
    [String.raw`{"model":7,"\u006dodel":"last"}`, 'last'],
    ['{"model":"good","model":null}', null],
  ];
  for (const [text, model] of pairs) {
    const answer = await post(text);
    assert.equal(answer.status, model === null ? 422 : 201, text);
    if (model === null) continue;
    assert.equal(answer.json.model, model);
    const found = await service.call(team.key, 'GET', `/traces/${answer.json.id}`);
    assert.equal(found.json.model, model);
  }
});

test('after all of this verify finds no difference in either team', async () => {
  assert.equal(await totalOf(service, victim), 1);
  await assertVerified(service, [
    [victim, 1],
    [team, await totalOf(service, team)],
  ]);
});
