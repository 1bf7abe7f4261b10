import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { limits } from '../../src/limits.ts';
import type { Store } from '../../src/store/store.ts';
import {
  chatAttributes,
  encode,
  encodings,
  hexId,
  logsRequest,
  otlpAttributes,
  spanOf,
  spansRequest,
  typeOf,
} from '../support/otlp.ts';
import type { Encoding, OtlpRequest } from '../support/otlp.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import * as http from './helpers.ts';

let service: TestService;

before(async () => {
  service = await startTestService({ flags: { 'trust-proxy': '127.0.0.1' } });
});
after(() => service.stop());

interface Wishes {
  path?: string;
  headers?: Record<string, string>;
  isChunked?: boolean;
}

function post(
  { key }: Pick<KeyHolder, 'key'>,
  encoding: Encoding,
  body: OtlpRequest | Uint8Array,
  { path = '/v1/traces', headers = {}, isChunked = false }: Wishes = {},
): Promise<Answer> {
  const bytes = body instanceof Uint8Array ? body : encode(encoding, body);
  const all = { ...typeOf(encoding), authorization: `Bearer ${key}`, ...headers };
  return http.send(service.url, { method: 'POST', path, headers: all, body: bytes, isChunked });
}

async function tracesOf({ key }: KeyHolder): Promise<Answer['json'][]> {
  const { json } = await service.call(key, 'GET', '/traces?limit=100');
  return json.traces.toReversed();
}

/** What a reply says if everything in the request was accepted. */
function assertAccepted(answer: Answer, encoding: Encoding): void {
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.text, encoding === 'json' ? '{}' : '');
  assertType(answer, encoding);
}

function assertType({ headers }: Answer, encoding: Encoding): void {
  const type = typeOf(encoding)['content-type'] ?? '';
  assert.ok(headers.get('content-type')?.startsWith(type), headers.get('content-type') ?? '');
}

/** The message of a google.rpc.Status. In protobuf it is the second field. */
function assertStatus(answer: Answer, encoding: Encoding, status: number, code: number): string {
  assert.equal(answer.status, status, answer.text);
  assertType(answer, encoding);
  if (encoding === 'json') {
    assert.deepEqual(Object.keys(answer.json), ['code', 'message']);
    assert.equal(answer.json.code, code);
    return answer.json.message;
  }
  assert.equal(answer.text.slice(0, 3), `\x08${String.fromCharCode(code)}\x12`);
  return answer.text.slice(4);
}

for (const encoding of encodings) {
  describe(`OTLP as ${encoding}`, () => {
    test('a 200 means that the model calls are stored, readable and counted', async () => {
      const holder = await service.keyFor();
      const atMs = Date.now() - 60_000;
      const span = spanOf({ atMs, durationMs: 1234 });
      assertAccepted(await post(holder, encoding, spansRequest([span])), encoding);
      const [trace, ...others] = await tracesOf(holder);
      assert.equal(others.length, 0);
      const { id: _id, created_at: _at, ...rest } = trace;
      assert.deepEqual(rest, {
        team_id: holder.teamId,
        model: 'gpt-4o',
        input: null,
        output: null,
        prompt_tokens: 12,
        completion_tokens: 5,
        latency_ms: 1234,
        cost_usd: 0.00008,
        cost_source: 'computed',
        status: 'success',
        error_message: null,
        feature_name: 'shop',
        user_identifier: null,
        started_at: new Date(atMs).toISOString().replace('Z', '000Z'),
        provider: 'openai',
        run_id: span.traceId,
      });
      const { json } = await service.call(holder.key, 'GET', '/analytics/overview');
      assert.equal(json.total_calls, 1);
    });

    test('a body may be compressed, sent in chunks without a length, or empty', async () => {
      const holder = await service.keyFor();
      const gzip = { headers: { 'content-encoding': 'gzip' } };
      const packed = gzipSync(encode(encoding, spansRequest([spanOf()])));
      assertAccepted(await post(holder, encoding, packed, gzip), encoding);
      assertAccepted(await post(holder, encoding, packed, { ...gzip, isChunked: true }), encoding);
      const request = spansRequest([spanOf()]);
      assertAccepted(await post(holder, encoding, request, { isChunked: true }), encoding);
      const empty = Buffer.from(encoding === 'json' ? '{}' : '');
      for (const path of ['/v1/traces', '/v1/logs', '/v1/metrics']) {
        assertAccepted(await post(holder, encoding, empty, { path }), encoding);
      }
      assert.equal((await tracesOf(holder)).length, 2);
    });

    test('metrics are accepted and not stored, whatever is in them', async () => {
      const holder = await service.keyFor();
      const path = '/v1/metrics';
      assertAccepted(await post(holder, encoding, spansRequest([spanOf()]), { path }), encoding);
      assert.deepEqual(await tracesOf(holder), []);
    });

    test('spans that are not model calls are accepted and skipped', async () => {
      const holder = await service.keyFor();
      const others = [
        { 'gen_ai.operation.name': 'invoke_agent' },
        { 'gen_ai.operation.name': 'execute_tool' },
        { 'openinference.span.kind': 'CHAIN' },
        { 'openinference.span.kind': 'TOOL' },
        { 'ai.operationId': 'ai.generateText' },
        { 'ai.operationId': 'ai.toolCall' },
        { 'traceloop.span.kind': 'workflow' },
        { 'langfuse.observation.type': 'span' },
        { 'langsmith.span.kind': 'chain' },
      ];
      const spans = others.map((own) => spanOf({ attributes: chatAttributes(own) }));
      spans.push(spanOf({ attributes: { 'http.request.method': 'POST' } }));
      assertAccepted(await post(holder, encoding, spansRequest(spans)), encoding);
      assert.deepEqual(await tracesOf(holder), []);
      assert.match(service.log(), /"stored":0,"duplicate":0,"skipped":10,"rejected":0/);
    });

    test('a call that cannot be stored is rejected with its reason, and the others are stored', async () => {
      const holder = await service.keyFor();
      const bad = {
        'it does not say which model was called': { 'gen_ai.request.model': '' },
        'gen_ai.usage.input_tokens must be an integer from 0 to 2147483647': {
          'gen_ai.usage.input_tokens': -1,
        },
        'gen_ai.usage.output_tokens must be a number': { 'gen_ai.usage.output_tokens': 'many' },
        'gen_ai.usage.cost must be a number from 0 to 1000000': { 'gen_ai.usage.cost': 1e9 },
      };
      const spans = Object.values(bad).map((own) => spanOf({ attributes: chatAttributes(own) }));
      const early = spanOf({ atMs: 1000 });
      const late = spanOf({ atMs: Date.now() + 48 * 3_600_000 });
      const request = spansRequest([...spans, spanOf(), early, late]);
      const answer = await post(holder, encoding, request);
      assert.equal(answer.status, 200);
      assertType(answer, encoding);
      assert.match(answer.text, /6 of 7 spans were rejected: /);
      for (const reason of Object.keys(bad)) assert.ok(answer.text.includes(`${reason} (1)`));
      assert.match(
        answer.text,
        /startTimeUnixNano must be from 2000-01-01 to 24 hours ahead of the server's clock \(2\)/,
      );
      if (encoding === 'json') assert.equal(answer.json.partialSuccess.rejectedSpans, '6');
      assert.equal((await tracesOf(holder)).length, 1);
    });

    test('a retry and a second instrumentation store nothing more', async () => {
      const holder = await service.keyFor();
      const attributes = chatAttributes({ 'gen_ai.response.id': 'chatcmpl-ABCDEFGHIJKLMNOP' });
      const first = spansRequest([spanOf({ attributes }), spanOf()]);
      for (let i = 0; i < 3; i++) assertAccepted(await post(holder, encoding, first), encoding);
      const second = spansRequest([spanOf({ attributes })]);
      assertAccepted(await post(holder, encoding, second), encoding);
      assert.equal((await tracesOf(holder)).length, 2);
      assert.match(service.log(), /"stored":0,"duplicate":2,"skipped":0,"rejected":0/);
    });

    test('a span of another emitter inside of a model call reports the same call; short response ids identify nothing', async () => {
      const holder = await service.keyFor();
      const [traceId, outer] = [hexId(16), hexId(8)];
      const inner = spanOf({ traceId, parentSpanId: outer });
      const around = spanOf({ traceId, spanId: outer });
      assertAccepted(await post(holder, encoding, spansRequest([inner])), encoding);
      const ofFramework = spansRequest([around], undefined, 'framework');
      assertAccepted(await post(holder, encoding, ofFramework), encoding);
      assert.equal((await tracesOf(holder)).length, 1);
      const short = chatAttributes({ 'gen_ai.response.id': 'chatcmpl-123' });
      const spans = [spanOf({ attributes: short }), spanOf({ attributes: short })];
      assertAccepted(await post(holder, encoding, spansRequest(spans)), encoding);
      assert.equal((await tracesOf(holder)).length, 3);
    });

    test('nested calls of one emitter are as many calls in any order, together or one by one', async () => {
      const [traceId, spanId] = [hexId(16), hexId(8)];
      const outer = spanOf({ traceId, spanId, durationMs: 900 });
      const inner = Array.from({ length: 5 }, () => spanOf({ traceId, parentSpanId: spanId }));
      for (const spans of [
        [outer, ...inner],
        [...inner, outer],
      ]) {
        const [together, oneByOne] = [await service.keyFor(), await service.keyFor()];
        assertAccepted(await post(together, encoding, spansRequest(spans)), encoding);
        for (const span of spans) {
          assertAccepted(await post(oneByOne, encoding, spansRequest([span])), encoding);
        }
        assert.equal((await tracesOf(together)).length, 6);
        assert.equal((await tracesOf(oneByOne)).length, 6);
      }
    });

    test('different calls are not one because they share the id of a web request, or half of a trace id', async () => {
      const holder = await service.keyFor();
      const attributes = chatAttributes({ request_id: '7f1c9a52-0000-4444-8888-1234567890ab' });
      const ofOneWebRequest = Array.from({ length: 3 }, () => spanOf({ attributes }));
      assertAccepted(await post(holder, encoding, spansRequest(ofOneWebRequest)), encoding);
      assert.equal((await tracesOf(holder)).length, 3);
      const spanId = hexId(8);
      for (const end of ['1', '2']) {
        const span = spanOf({ traceId: `${'ab'.repeat(15)}0${end}`, spanId });
        assertAccepted(await post(holder, encoding, spansRequest([span])), encoding);
      }
      assert.equal((await tracesOf(holder)).length, 5);
    });

    test('the API key may be in x-api-key; without one, or without the scope, the reply is a Status', async () => {
      const holder = await service.keyFor();
      const reader = await service.keyFor(holder.team, { scope: 'read' });
      const path = '/v1/traces';
      const send = (headers: Record<string, string>) =>
        http.send(service.url, {
          method: 'POST',
          path,
          headers: { ...typeOf(encoding), ...http.fromFreshAddress(), ...headers },
          body: encode(encoding, spansRequest([spanOf()])),
        });
      assertAccepted(await send({ 'x-api-key': holder.key }), encoding);
      assert.match(assertStatus(await send({}), encoding, 401, 16), /Authorization: Bearer/);
      assertStatus(await send({ 'x-api-key': `${holder.key}0` }), encoding, 401, 16);
      const wrong = http.bearer('tt_wrong');
      assertStatus(await send({ ...wrong, 'x-api-key': holder.key }), encoding, 401, 16);
      const message = assertStatus(await send({ 'x-api-key': reader.key }), encoding, 403, 7);
      assert.match(message, /scope "read"/);
      assert.equal((await tracesOf(holder)).length, 1);
    });

    test('bad data is 400 with a Status that says what is wrong', async () => {
      const holder = await service.keyFor();
      const bad =
        encoding === 'json'
          ? {
              '{"resourceSpans": {}}': /resourceSpans must be a list of objects/,
              '{"resourceSpans": [{"scopeSpans": [1]}]}': /resourceSpans\[0\]\.scopeSpans must be/,
              '[]': /the body must be an object/,
              '{"resourceSpans"': /not valid JSON/,
              '': /body is empty/,
            }
          : {
              '\x0a\x05abc': /a field is longer than its message/,
              '\x00': /a field has the number 0/,
              '\x0b': /field 1 has the wire type 3 instead of 2/,
              '\x0a': /a number is cut off/,
            };
      for (const [body, reason] of Object.entries(bad)) {
        const answer = await post(holder, encoding, Buffer.from(body, 'latin1'));
        assert.match(assertStatus(answer, encoding, 400, 3), reason, JSON.stringify(body));
      }
      const gzip = { headers: { 'content-encoding': 'gzip' } };
      assertStatus(await post(holder, encoding, Buffer.from('x'), gzip), encoding, 400, 3);
      assert.deepEqual(await tracesOf(holder), []);
    });

    test('a body that is too large is 413, also if it is only large after decompression', async () => {
      const holder = await service.keyFor();
      const bytes = Buffer.alloc(limits.batchBodyBytesMax + 1, ' ');
      assertStatus(await post(holder, encoding, bytes), encoding, 413, 3);
      const gzip = { headers: { 'content-encoding': 'gzip' } };
      assertStatus(await post(holder, encoding, gzipSync(bytes), gzip), encoding, 413, 3);
    });

    test('more calls than are stored at once are all stored, and once', async () => {
      const holder = await service.keyFor();
      const count = 2_055;
      const request = spansRequest(Array.from({ length: count }, () => spanOf()));
      assertAccepted(await post(holder, encoding, request), encoding);
      assertAccepted(await post(holder, encoding, request), encoding);
      const { json } = await service.call(holder.key, 'GET', '/traces?limit=1');
      assert.equal(json.total, count);
    });

    test('logs of a call are stored once, also if they are exported again', async () => {
      const holder = await service.keyFor();
      const time = `${Date.now()}000000`;
      const log = (id: string) => ({
        timeUnixNano: time,
        body: { stringValue: 'claude_code.api_request' },
        attributes: otlpAttributes({
          'event.name': 'api_request',
          model: 'claude-sonnet-5',
          input_tokens: '10',
          output_tokens: '20',
          cache_read_tokens: '300',
          cost_usd: '0.0125',
          duration_ms: '850',
          request_id: id,
        }),
      });
      const request = logsRequest([log('req_011CXabcdefghijkl'), log('req_011CXmnopqrstuvw')]);
      const path = '/v1/logs';
      for (let i = 0; i < 2; i++) {
        assertAccepted(await post(holder, encoding, request, { path }), encoding);
      }
      const traces = await tracesOf(holder);
      assert.equal(traces.length, 2);
      const { prompt_tokens: prompt, cache_read_tokens: cached, cost_usd: cost } = traces[0];
      assert.deepEqual([prompt, cached, cost, traces[0].latency_ms], [310, 300, 0.0125, 850]);
    });
  });
}

test('an exporter that reaches another path is told the right one', async () => {
  const based = await startTestService({ flags: { 'base-path': '/v1' } });
  try {
    const { key } = await based.keyFor();
    const ask = (path: string, encoding: Encoding) =>
      http.send(based.url, {
        method: 'POST',
        path,
        headers: { ...typeOf(encoding), ...http.bearer(key) },
        body: encode(encoding, spansRequest([spanOf()])),
      });
    const binary = await ask('/v1/traces', 'protobuf');
    http.assertProblem(binary, 'unsupported_media_type');
    assert.match(binary.json.detail, /\/v1\/v1\/traces/);
    const json = await ask('/v1/traces', 'json');
    assert.match(http.assertFieldError(json, 'body'), /\/v1\/v1\/traces/);
    assert.equal((await ask('/v1/v1/traces', 'protobuf')).status, 200);
    const { json: page } = await based.call(key, 'GET', '/traces');
    assert.equal(page.total, 1);
  } finally {
    await based.stop();
  }
});

test('if writes fail, exporters are told to retry, also if the disk is full', async () => {
  for (const [code, seconds] of [
    ['disk_full', '5'],
    ['store_unavailable', '5'],
    ['queue_full', '1'],
  ] as const) {
    const broken = await http.startBrokenService({
      append: async (writes) => writes.map(() => ({ kind: 'failed', code, reason: 'test' })),
    });
    try {
      const answer = await http.send(broken.url, {
        method: 'POST',
        path: '/v1/traces',
        headers: { ...typeOf('json'), ...http.bearer(broken.key) },
        body: encode('json', spansRequest([spanOf()])),
      });
      assertStatus(answer, 'json', 503, 14);
      assert.equal(answer.headers.get('retry-after'), seconds);
    } finally {
      await broken.stop();
    }
  }
});

/** Each starts a millisecond after the one before. */
const manySpans = (count: number) =>
  spansRequest(Array.from({ length: count }, (_, i) => spanOf({ atMs: Date.now() - i })));

test('a large request that finds no room in the queue stores nothing, and says so', async () => {
  const bounds = { queueRowsMax: 100, queueBytesMax: 1_000_000 };
  const full = await http.startBrokenService({}, bounds);
  try {
    const headers = { ...typeOf('json'), ...http.bearer(full.key) };
    const sent = { method: 'POST', path: '/v1/traces', headers };
    const body = encode('json', manySpans(2_000));
    const answer = await http.send(full.url, { ...sent, body });
    assertStatus(answer, 'json', 503, 14);
    assert.match(answer.json.message, /Nothing in this request was stored/);
    const page = await http.send(full.url, { path: '/traces', headers: http.bearer(full.key) });
    assert.equal(page.json.total, 0);
    const fitting = encode('json', manySpans(50));
    assert.equal((await http.send(full.url, { ...sent, body: fitting })).status, 200);
  } finally {
    await full.stop();
  }
});

test('a large request of which the store fails a part says how much of it was stored, and again it is stored once', async () => {
  let writes = 0;
  const failing = await http.startBrokenService((sound) =>
    failingFrom(sound, () => ++writes > 3 && writes < 1_000),
  );
  try {
    const headers = { ...typeOf('json'), ...http.bearer(failing.key) };
    const body = encode('json', manySpans(2_000));
    const send = () =>
      http.send(failing.url, { method: 'POST', path: '/v1/traces', headers, body });
    const total = async (): Promise<number> => {
      const page = { path: '/traces', headers: http.bearer(failing.key) };
      return (await http.send(failing.url, page)).json.total;
    };
    const answer = await send();
    assertStatus(answer, 'json', 503, 14);
    const stored = await total();
    assert.ok(stored > 0 && stored < 2_000, `${stored} stored`);
    assert.match(
      answer.json.message,
      new RegExp(`^Only ${stored} of the 2000 calls in this request`),
    );
    writes = 1_000;
    assert.equal((await send()).status, 200);
    assert.equal(await total(), 2_000);
  } finally {
    await failing.stop();
  }
});

/** A store that fails writes instead of storing them as long as the function says so. */
function failingFrom(sound: Store, isFailing: () => boolean): Partial<Store> {
  return {
    append: async (writes, moreFollow, tell) => {
      if (!isFailing()) return sound.append(writes, moreFollow, tell);
      return writes.map(() => ({ kind: 'failed', code: 'disk_full', reason: 'test' }));
    },
  };
}
