import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { limits } from '../../src/limits.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import type { Fixture } from '../emitters/fixture.ts';
import { chatAttributes, encode, spanOf, spansRequest } from '../support/otlp.ts';
import { chooseSeed, pick, seededRandom } from '../support/seeded-random.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';

/** Few in `npm test`; 100,000 in `npm run test:fuzz`. */
const bodiesCount = Number(process.env['FUZZ_BODIES'] ?? 3_000);
const clients = 8;
const seed = chooseSeed();

interface Body {
  path: string;
  type: string;
  bytes: Buffer;
}

/** What real emitters sent, and spans of our own in both encodings. */
function realBodies(): Body[] {
  const folder = new URL('../emitters/fixtures/', import.meta.url);
  const recorded = globSync('*.json', { cwd: folder }).flatMap((name) => {
    const { requests } = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Fixture;
    return requests.map(({ path, type, gzipBase64 }) => ({
      path,
      type,
      bytes: gunzipSync(Buffer.from(gzipBase64, 'base64')),
    }));
  });
  const attributes = chatAttributes({
    'gen_ai.input.messages': [{ role: 'user', parts: [{ type: 'text', content: 'é😀' }] }],
    'gen_ai.prompt.0.content': 'x',
    'llm.invocation_parameters': '{"model":"m"}',
  });
  const own = spansRequest([spanOf({ attributes }), spanOf()]);
  return [
    ...recorded,
    { path: '/v1/traces', type: 'application/json', bytes: encode('json', own) },
    { path: '/v1/traces', type: 'application/x-protobuf', bytes: encode('protobuf', own) },
    {
      path: '/ingest/litellm',
      type: 'application/json',
      bytes: Buffer.from('[{"id":"a","model":"m"}]'),
    },
  ];
}

const jsonTokens = [
  'null',
  '-1',
  '1e999',
  '"x"',
  '[]',
  '{}',
  'true',
  '[[[[[[[[[[1]]]]]]]]]]',
  '"\\ud800"',
  '"\\u0000"',
  ',',
  ':',
  '"__proto__":{"a":1},',
  '99999999999999999999',
];

/** A few changes: bytes that are flipped, inserted, left out, repeated, or taken from another body. */
function mutate(random: () => number, { path, type, bytes }: Body, other: Body): Body {
  let result = bytes;
  const below = (limit: number): number => Math.floor(random() * limit);
  const changes = 1 + below(6);
  for (let i = 0; i < changes; i++) {
    const at = below(result.length + 1);
    const length = below(random() < 0.7 ? 8 : 400);
    const before = result.subarray(0, at);
    const rest = result.subarray(at);
    switch (below(type.includes('json') ? 7 : 6)) {
      case 0:
        result = Buffer.from(result);
        if (at < result.length) result[at] = below(256);
        break;
      case 1:
        result = Buffer.concat([before, rest.subarray(length)]);
        break;
      case 2:
        result = Buffer.concat([before, rest.subarray(0, length), rest]);
        break;
      case 3:
        result = Buffer.concat([
          before,
          Buffer.from(Array.from({ length }, () => below(256))),
          rest,
        ]);
        break;
      case 4:
        if (random() < 0.2) result = before;
        break;
      case 5:
        result = Buffer.concat([
          before,
          other.bytes.subarray(below(other.bytes.length)).subarray(0, 4 * length),
          rest,
        ]);
        break;
      default:
        result = Buffer.concat([
          before,
          Buffer.from(pick(random, jsonTokens)),
          rest.subarray(length),
        ]);
    }
  }
  const isSwapped = random() < 0.05 && other.type === type;
  return { path: isSwapped ? other.path : path, type, bytes: result };
}

let service: TestService;
let holder: KeyHolder;
let bystander: KeyHolder;
before(async () => {
  service = await startTestService({ flags: { 'log-level': 'info' } });
  holder = await service.keyFor('fuzzed');
  bystander = await service.keyFor('bystander');
});
after(() => service.stop());

function post(
  agent: Agent,
  { path, type, bytes }: Body,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${holder.key}`, 'content-type': type };
    const outgoing = request(
      `${service.url}${path}`,
      { method: 'POST', agent, headers },
      (incoming) => {
        const pieces: Buffer[] = [];
        incoming.on('data', (piece: Buffer) => pieces.push(piece));
        incoming.on('end', () => {
          resolve({ status: incoming.statusCode ?? 0, text: Buffer.concat(pieces).toString() });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(bytes);
  });
}

test(`${bodiesCount} mutated bodies get a 200, a 400 or a 413 with a reason, and store nothing that is not valid`, async (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const bodies = realBodies();
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const statuses = new Map<number, number>();
  let left = bodiesCount;
  let partial = 0;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const body = mutate(random, pick(random, bodies), pick(random, bodies));
      const { status, text } = await post(agent, body);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const shown = `${status} ${text} (seed ${seed}) ${body.path} ${body.bytes.toString('base64').slice(0, 2000)}`;
      assert.ok([200, 400, 413].includes(status), shown);
      if (status !== 200) assert.match(text, /[A-Z][^.]+\./, shown);
      if (text.includes('rejected:')) partial += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  agent.destroy();
  t.diagnostic(`${JSON.stringify([...statuses])}, ${partial} of them rejected in part`);
  assert.ok(
    (statuses.get(200) ?? 0) > bodiesCount / 20 && (statuses.get(400) ?? 0) > bodiesCount / 20,
  );
  assert.ok(partial > 0);
  // So many refusals are logged in summary, as a warning.
  const alarms = service
    .log()
    .split('\n')
    .filter((line) => /"level":"(?:error|fatal|warn)"/.test(line))
    .filter((line) => !line.includes('more requests failed than were logged individually'));
  assert.deepEqual(alarms.slice(0, 10), [], `${alarms.length} warnings and errors`);
  await assertValid(await everyTrace());
  const { json } = await service.call(bystander.key, 'GET', '/traces');
  assert.equal(json.total, 0, 'no other team got traces');
  const { differences } = await verifyTeam(service.beside, holder.teamId);
  assert.deepEqual(differences, []);
});

async function everyTrace(): Promise<Answer['json'][]> {
  const traces: Answer['json'][] = [];
  for (let page = 1; ; page++) {
    const { json } = await service.call(holder.key, 'GET', `/traces?limit=100&page=${page}`);
    if (json.traces.length === 0) return traces;
    traces.push(...json.traces);
  }
}

const labels =
  'model response_model provider feature_name user_identifier session_id run_id environment error_type';
const counts =
  'prompt_tokens completion_tokens cache_read_tokens cache_write_tokens reasoning_tokens latency_ms ttft_ms';

/** The rules of `POST /traces`, written down a second time. */
async function assertValid(traces: readonly Answer['json'][]): Promise<void> {
  assert.ok(traces.length > 20);
  for (const trace of traces) {
    const shown = JSON.stringify(trace).slice(0, 1000);
    assert.ok(typeof trace.model === 'string', shown);
    for (const name of labels.split(' ')) {
      const label: unknown = trace[name] ?? null;
      if (label === null) continue;
      assert.ok(typeof label === 'string' && label !== '' && label.isWellFormed(), shown);
      assert.ok(Array.from(label).length <= limits.labelCharsMax && !/\p{Cc}/u.test(label), shown);
    }
    for (const name of counts.split(' ')) {
      const count: unknown = trace[name] ?? null;
      if (count === null) continue;
      assert.ok(Number.isInteger(count) && Number(count) >= 0, shown);
      assert.ok(Number(count) <= limits.countMax, shown);
    }
    const cached = (trace.cache_read_tokens ?? 0) + (trace.cache_write_tokens ?? 0);
    assert.ok(trace.prompt_tokens === null || cached <= trace.prompt_tokens, shown);
    assert.ok(
      trace.completion_tokens === null || (trace.reasoning_tokens ?? 0) <= trace.completion_tokens,
      shown,
    );
    assert.ok(
      trace.cost_usd === null || (trace.cost_usd >= 0 && trace.cost_usd <= limits.costUsdMax),
      shown,
    );
    const at = trace.started_at === undefined ? Date.now() : Date.parse(trace.started_at);
    assert.ok(at >= Date.parse('2000-01-01') && at < Date.now() + 25 * 3_600_000, shown);
  }
}
