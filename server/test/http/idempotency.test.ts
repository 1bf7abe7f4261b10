import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { limits } from '../../src/limits.ts';
import { manualClock, startTestService, temporaryFolder, us } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import * as http from './helpers.ts';

const noon = us('2026-11-04T12:00:00Z');
const lifeUs = limits.idempotencyLifeMs * 1000;
const clock = manualClock(noon);
let service: TestService;
let team: KeyHolder;
let names = 0;

before(async () => {
  service = await startTestService({ clock });
  team = await service.keyFor();
});
after(() => service.stop());

const single = JSON.stringify({ model: 'm', input: 'question', cost_usd: 0.0015 });
const batch = JSON.stringify({
  traces: [{ model: 'a' }, { model: '' }, { model: 'b', latency_ms: 7 }, 12, { model: 'c' }],
});
/** Good at both paths. */
const either = JSON.stringify({ model: 'm', traces: [{ model: 'm' }] });

const freshName = (): string => `key-${++names}`;

function post(
  path: string,
  body: string | Uint8Array,
  idempotencyKey: string,
  { key = team.key, headers = {} }: { key?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const own = { ...http.bearer(key), ...http.jsonType, 'idempotency-key': idempotencyKey };
  return http.send(service.url, { method: 'POST', path, body, headers: { ...own, ...headers } });
}

function isReplay(answer: Answer): boolean {
  const told = answer.headers.get('idempotent-replayed');
  assert.ok(told === null || told === 'true', String(told));
  return told === 'true';
}

/** The list and all sums, as text. */
async function readAll({ key }: KeyHolder): Promise<string> {
  const paths = ['/traces?limit=100', '/analytics/overview', '/analytics/by-model'];
  const texts = await Promise.all(paths.map((path) => service.call(key, 'GET', path)));
  return texts.map(({ text }) => text).join('\n');
}

async function totalOf({ key }: KeyHolder, at = service): Promise<number> {
  return (await at.call(key, 'GET', '/traces?limit=1')).json.total;
}

/** Everything of an answer that the caller sees, except what differs between any two. */
function shown({ status, headers, text }: Answer): object {
  const {
    date: _date,
    'x-request-id': _id,
    'idempotent-replayed': _told,
    ...rest
  } = Object.fromEntries(headers);
  return { status, text, headers: rest };
}

for (const [path, body] of [
  ['/traces', single],
  ['/traces/batch', batch],
  ['/traces/batch?omit=input,output', batch],
] as const) {
  test(`POST ${path} with the idempotency key of an earlier request returns the same bytes and stores nothing`, async () => {
    const name = freshName();
    const first = await post(path, body, name);
    assert.equal(first.status, 201, first.text);
    assert.equal(isReplay(first), false);
    const before = await readAll(team);
    for (let i = 0; i < 3; i++) {
      clock.set(noon + i * 3_600_000_000);
      const again = await post(path, body, name);
      assert.equal(isReplay(again), true);
      assert.deepEqual(shown(again), shown(first));
      assert.equal(await readAll(team), before);
    }
    clock.set(noon);
    if (path === '/traces') {
      assert.equal(first.headers.get('location'), `/traces/${first.json.id}`);
    } else {
      assert.deepEqual(
        first.json.rejected.map(({ index }: { index: number }) => index),
        [1, 3],
      );
    }
  });
}

test('without a key every request is a new one', async () => {
  const before = await totalOf(team);
  for (let i = 0; i < 3; i++) {
    const answer = await service.call(team.key, 'POST', '/traces', single);
    assert.deepEqual([answer.status, isReplay(answer)], [201, false]);
  }
  assert.equal(await totalOf(team), before + 3);
});

test('a replay omits the payloads that its query omits', async () => {
  const name = freshName();
  const body = JSON.stringify({ traces: [{ model: 'm', input: 'in', output: 'out' }] });
  const whole = await post('/traces/batch', body, name);
  const bare = await post('/traces/batch?omit=input,output', body, name);
  assert.equal(isReplay(bare), true);
  const { input, output, ...rest } = whole.json.traces[0];
  assert.deepEqual([input, output], ['in', 'out']);
  assert.deepEqual(bare.json, { traces: [rest], rejected: [] });
});

test('the replay of unusual and long text has the same bytes', async () => {
  const bodies = [
    String.raw`{"model":"\ud800é😀","input":"a\u0000b\udfff","output":""}`,
    JSON.stringify({
      model: 'm',
      input: '😀 '.repeat(40_000),
      error_message: 'x\u0000'.repeat(900),
    }),
    '{"model":"m","cost_usd":-0.0,"prompt_tokens":1e3,"latency_ms":-0,"completion_tokens":2.0}',
    '{"model":"m","cost_usd":1e-7}',
    '{"model":"m","cost_usd":0.30000000000000004,"status":null,"feature_name":null}',
  ];
  for (const body of bodies) {
    for (const [path, text] of [
      ['/traces', body],
      ['/traces/batch', `{"traces":[${body},{"model":"m"},${body}]}`],
    ] as const) {
      const name = freshName();
      const first = await post(path, text, name);
      const again = await post(path, text, name);
      assert.deepEqual([first.status, isReplay(again)], [201, true], body.slice(0, 60));
      assert.equal(again.text, first.text);
    }
  }
});

test('the same idempotency key with another body is refused, stores nothing, and does not change the first', async () => {
  for (const [path, body] of [
    ['/traces', single],
    ['/traces/batch', batch],
  ] as const) {
    const name = freshName();
    const first = await post(path, body, name);
    const before = await readAll(team);
    // One other byte makes another request, even if it means the same.
    for (const other of [`${body} `, body.replace('"model":"', '"model":"x'), either]) {
      http.assertProblem(await post(path, other, name), 'idempotency_key_reused');
    }
    assert.equal(await readAll(team), before);
    assert.equal((await post(path, body, name)).text, first.text);
  }
});

test('the same key and body at another path is another request', async () => {
  for (const [path, other] of [
    ['/traces', '/traces/batch'],
    ['/traces/batch', '/traces'],
  ] as const) {
    const name = freshName();
    assert.equal((await post(path, either, name)).status, 201);
    const before = await totalOf(team);
    http.assertProblem(await post(other, either, name), 'idempotency_key_reused');
    assert.equal(await totalOf(team), before);
  }
});

test('idempotency keys belong to the team: other teams are independent, and all API keys of a team share them', async () => {
  const [stranger, colleague] = [await service.keyFor(), await service.keyFor(team.team)];
  const ingest = await service.keyFor(team.team, { scope: 'ingest' });
  const name = freshName();
  const first = await post('/traces', single, name);
  const foreign = await post('/traces', single, name, { key: stranger.key });
  assert.deepEqual([foreign.status, isReplay(foreign)], [201, false]);
  assert.notEqual(foreign.json.id, first.json.id);
  assert.equal(foreign.json.team_id, stranger.teamId);
  assert.equal(await totalOf(stranger), 1);
  for (const { key } of [colleague, ingest]) {
    const again = await post('/traces', single, name, { key });
    assert.deepEqual([isReplay(again), again.text], [true, first.text]);
  }
  // What one team has used with another body is free for another team.
  const other = await service.keyFor();
  assert.equal((await post('/traces', '{"model":"n"}', name, { key: other.key })).status, 201);
});

test('a compressed and a plain body with the same content are the same request', async () => {
  const packed = { headers: { 'content-encoding': 'gzip' } };
  for (const [path, body] of [
    ['/traces', single],
    ['/traces/batch', batch],
  ] as const) {
    for (const isPackedFirst of [false, true]) {
      const name = freshName();
      const plainly = () => post(path, body, name);
      const inGzip = () => post(path, gzipSync(body), name, packed);
      const first = await (isPackedFirst ? inGzip() : plainly());
      const again = await (isPackedFirst ? plainly() : inGzip());
      const third = await post(path, gzipSync(body, { level: 1 }), name, packed);
      assert.deepEqual([first.status, isReplay(first)], [201, false]);
      assert.deepEqual([isReplay(again), isReplay(third)], [true, true]);
      assert.deepEqual([again.text, third.text], [first.text, first.text]);
      const other = gzipSync(`${body} `);
      http.assertProblem(await post(path, other, name, packed), 'idempotency_key_reused');
    }
  }
});

describe('a request that fails does not use up its idempotency key', () => {
  const inGzip = { 'content-encoding': 'gzip' };
  const tooLarge = gzipSync(' '.repeat(limits.bodyBytesMax + 1));
  type Row = [what: string, path: string, body: string | Uint8Array, status: number, more?: object];
  const rows: readonly Row[] = [
    ['a trace without a model', '/traces', '{}', 422],
    ['a batch without a valid trace', '/traces/batch', '{"traces":[{},null]}', 422],
    ['an empty batch', '/traces/batch', '{"traces":[]}', 422],
    ['an odd query', '/traces/batch?omit=x', either, 422],
    ['half a body', '/traces', '{"model":"m"', 400],
    ['a body that is no gzip', '/traces', single, 400, inGzip],
    ['another type', '/traces', single, 415, { 'content-type': 'text/plain' }],
    ['another encoding', '/traces', single, 415, { 'content-encoding': 'br' }],
    ['a body that is too large', '/traces', tooLarge, 413, inGzip],
    ['a key that is unknown', '/traces', single, 401, { authorization: 'Bearer x' }],
  ];
  for (const [what, path, body, status, headers] of rows) {
    test(what, async () => {
      const name = freshName();
      const before = await totalOf(team);
      const refused = await post(path, body, name, headers && { headers: { ...headers } });
      assert.deepEqual([refused.status, isReplay(refused)], [status, false], refused.text);
      const stored = await post('/traces', either, name);
      assert.deepEqual([stored.status, isReplay(stored)], [201, false], stored.text);
      assert.equal(await totalOf(team), before + 1);
    });
  }
  test('a key without the scope', async () => {
    const name = freshName();
    const { key } = await service.keyFor(team.team, { scope: 'read' });
    http.assertProblem(await post('/traces', single, name, { key }), 'scope_missing');
    assert.equal(isReplay(await post('/traces', single, name)), false);
  });
  test('a row that the store rejects', async () => {
    const name = freshName();
    const refusal = {
      sqlite: {
        add: `create trigger refusal before insert on traces when new.model = 'refused'
          begin select raise(abort, 'not this one'); end`,
        drop: 'drop trigger refusal',
      },
      postgres: {
        add: `alter table traces add constraint refusal check (model <> 'refused')`,
        drop: 'alter table traces drop constraint refusal',
      },
    }[service.store];
    const before = await totalOf(team);
    const body = '{"traces":[{"model":"good"},{"model":"refused"}]}';
    await service.sql(refusal.add);
    try {
      assert.equal((await post('/traces/batch', body, name)).status, 500);
      assert.equal((await post('/traces/batch', body, name)).status, 500);
    } finally {
      await service.sql(refusal.drop);
    }
    assert.equal(await totalOf(team), before);
    const stored = await post('/traces/batch', body, name);
    assert.deepEqual([stored.status, isReplay(stored)], [201, false]);
    assert.equal(isReplay(await post('/traces/batch', body, name)), true);
    assert.equal(await totalOf(team), before + 2);
  });
  test('a full queue', async () => {
    const full = await http.startBrokenService({}, { queueRowsMax: 2, queueBytesMax: 100_000 });
    const headers = { ...http.bearer(full.key), ...http.jsonType, 'idempotency-key': 'k' };
    const send = (count: number): Promise<Answer> => {
      const traces = Array.from({ length: count }, () => ({ model: 'm' }));
      const body = JSON.stringify({ traces });
      return http.send(full.url, { method: 'POST', path: '/traces/batch', headers, body });
    };
    try {
      http.assertProblem(await send(3), 'queue_full');
      const stored = await send(2);
      assert.deepEqual([stored.status, isReplay(stored)], [201, false]);
      assert.equal(isReplay(await send(2)), true);
    } finally {
      await full.stop();
    }
  });
});

describe('the header', () => {
  const message = `must be 1 to ${limits.idempotencyKeyCharsMax} visible ASCII characters`;
  const bad: Readonly<Record<string, string>> = {
    'an empty key': '',
    'a space inside': 'a b',
    'a tab inside': 'a\tb',
    'a letter beyond ASCII': 'schlüssel',
    'a control character beyond ASCII': 'a\u0080',
    '256 characters': 'k'.repeat(256),
    '10,000 characters': 'k'.repeat(10_000),
  };
  for (const [what, name] of Object.entries(bad)) {
    test(`${what} is refused by its name, at both paths`, async () => {
      const before = await totalOf(team);
      for (const [path, body] of [
        ['/traces', single],
        ['/traces/batch', batch],
      ] as const) {
        const answer = await post(path, body, name);
        http.assertFieldError(answer, 'Idempotency-Key', message);
        assert.ok(name.trim() === '' || !answer.text.includes(name), 'it is not repeated');
      }
      assert.equal(await totalOf(team), before);
    });
  }
  test('given twice is refused', async () => {
    const lines = [
      'POST /traces HTTP/1.1',
      'host: x',
      `authorization: Bearer ${team.key}`,
      'content-type: application/json',
      'connection: close',
      'idempotency-key: one',
      'idempotency-key: two',
      `content-length: ${single.length}`,
    ];
    const answer = await http.sendBytes(service.url, `${lines.join('\r\n')}\r\n\r\n${single}`);
    http.assertProblem(answer, 'malformed_request');
    assert.match(answer.json.detail, /"Idempotency-Key"/);
  });
  test('takes every visible character, and 255 of them', async () => {
    const all = Array.from({ length: 0x7e - 0x20 }, (_, i) => String.fromCharCode(0x21 + i));
    for (const name of ['x', all.join(''), 'k'.repeat(255), '"quoted"', '%00', '../..', "';--"]) {
      const first = await post('/traces', single, name);
      const again = await post('/traces', single, name);
      assert.deepEqual([first.status, isReplay(first)], [201, false], name);
      assert.deepEqual([again.text, isReplay(again)], [first.text, true], name);
    }
    // Where two differ by a letter's case, they are two.
    assert.equal(isReplay(await post('/traces', single, 'K'.repeat(255))), false);
  });
  test('has no effect on what is read', async () => {
    const headers = { 'idempotency-key': 'a b' };
    assert.equal((await service.call(team.key, 'GET', '/traces', undefined, headers)).status, 200);
  });
});

test('an idempotency key is valid for exactly 24 hours and can then be used again', async () => {
  const name = freshName();
  const holder = await service.keyFor();
  const send = async (atUs: number, body = single) => {
    clock.set(atUs);
    const answer = await post('/traces', body, name, { key: holder.key });
    return { answer, isReplay: isReplay(answer), total: await totalOf(holder) };
  };
  try {
    const first = await send(noon);
    const last = await send(noon + lifeUs - 1);
    assert.deepEqual([last.isReplay, last.answer.text, last.total], [true, first.answer.text, 1]);
    const second = await send(noon + lifeUs);
    assert.deepEqual([second.answer.status, second.isReplay, second.total], [201, false, 2]);
    assert.notEqual(second.answer.json.id, first.answer.json.id);
    const again = await send(noon + 2 * lifeUs - 1);
    assert.deepEqual([again.isReplay, again.answer.text], [true, second.answer.text]);
    // Once it is free, it is free for another body as well.
    const other = await send(noon + 2 * lifeUs, '{"model":"other"}');
    assert.deepEqual([other.answer.status, other.isReplay, other.total], [201, false, 3]);
    const reused = await send(noon + 2 * lifeUs + 1);
    http.assertProblem(reused.answer, 'idempotency_key_reused');
  } finally {
    clock.set(noon);
  }
});

test('later writes of the team delete expired keys, a bounded number per write', async () => {
  const own = manualClock(noon);
  const small = await startTestService({ clock: own });
  const rows = async (): Promise<number> =>
    Number((await small.sql('select count(*) as n from idempotency'))[0]?.['n']);
  try {
    const [busy, quiet] = [await small.keyFor(), await small.keyFor()];
    const send = async ({ key }: KeyHolder, name: string): Promise<void> => {
      const headers = { 'idempotency-key': name };
      const { status } = await small.call(key, 'POST', '/traces', { model: 'm' }, headers);
      assert.equal(status, 201);
    };
    await Promise.all(Array.from({ length: 250 }, (_, i) => send(busy, `old-${i}`)));
    await send(quiet, 'old');
    own.set(noon + lifeUs - 1);
    await send(busy, 'fresh');
    assert.equal(await rows(), 252, 'nothing has expired');
    own.set(noon + lifeUs);
    const most = limits.idempotencySweepRowsMax;
    for (const [i, left] of [252 - most, 252 - 2 * most, 2, 2].entries()) {
      await send(busy, `new-${i}`);
      assert.equal(await rows(), left + i + 1, `after ${i + 1} writes`);
    }
    // The life of those is not over, and what belongs to another team is not this team's to clean.
    await send(busy, 'fresh');
    assert.equal(await rows(), 6);
    await send(quiet, 'new');
    assert.equal(await rows(), 6, 'its own has gone');
    assert.equal(await totalOf(busy, small), 250 + 1 + 4);
  } finally {
    await small.stop();
  }
});

test('a key is remembered across a restart', async () => {
  const folder = temporaryFolder();
  const own = manualClock(noon);
  const requests = [
    ['/traces', single],
    ['/traces/batch', batch],
  ] as const;
  const replies: Answer[] = [];
  let key = '';
  for (let start = 0; start < 3; start++) {
    const running = await startTestService({ clock: own, folder: folder.path });
    try {
      if (start === 0) key = (await running.keyFor()).key;
      for (const [i, [path, body]] of requests.entries()) {
        const headers = { 'idempotency-key': `restart-${i}` };
        const answer = await running.call(key, 'POST', path, body, headers);
        assert.deepEqual([answer.status, isReplay(answer)], [201, start > 0]);
        replies[i] ??= answer;
        assert.deepEqual(shown(answer), shown(replies[i]));
        const other = await running.call(key, 'POST', path, `${body}\n`, headers);
        assert.equal(other.json.code, 'idempotency_key_reused');
      }
      const { json } = await running.call(key, 'GET', '/analytics/overview');
      assert.equal(json.total_calls, 4);
    } finally {
      await running.stop();
    }
  }
  folder.remove();
});

test('neither the log nor any file holds the key itself', async () => {
  const name = 'canary-of-idempotency-zqxj';
  assert.equal((await post('/traces', single, name)).status, 201);
  http.assertProblem(await post('/traces', '{"model":"n"}', name), 'idempotency_key_reused');
  assert.equal((await post('/traces', '{', name)).status, 400);
  assert.equal((await post('/traces', single, `${name} and more`)).status, 422);
  assert.doesNotMatch(service.log(), /canary|zqxj/);
  const bytes = await service.bytesOnDisk();
  assert.ok(bytes.includes('question'), 'what was stored is there');
  assert.ok(!bytes.includes(name));
});

test('a replay whose trace is missing in the store is a 503, never another trace', async () => {
  const damaged = await startTestService();
  try {
    const { key } = await damaged.keyFor();
    const headers = { 'idempotency-key': 'k' };
    const first = await damaged.call(key, 'POST', '/traces/batch', batch, headers);
    assert.equal(first.status, 201);
    await damaged.call(key, 'POST', '/traces', single);
    const second = { sqlite: 'key & 0xffffffffff = 2', postgres: 'seq = 2' }[damaged.store];
    await damaged.sql(`delete from traces where ${second}`);
    const again = await damaged.call(key, 'POST', '/traces/batch', batch, headers);
    http.assertProblem(again, 'store_unavailable');
  } finally {
    await damaged.stop();
  }
});
