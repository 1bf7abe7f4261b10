import assert from 'node:assert/strict';
import { Agent, METHODS, request } from 'node:http';
import { after, before, test } from 'node:test';
import { chooseSeed, pick, seededRandom } from '../support/seeded-random.ts';
import { chatAttributes, spanOf, spansRequest } from '../support/otlp.ts';
import type { OtlpSpan } from '../support/otlp.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';
import { assertVerified, exchange, exchangeAnswers } from './helpers.ts';
import { totalOf, writeRequest } from './helpers.ts';
import type { WireAnswer, Written } from './helpers.ts';

/** A team whose answers differ from the other's in their text and in their numbers. */
interface Side {
  holder: KeyHolder;
  mark: string;
  latencyMs: number;
  status: 'success' | 'error';
  id: string;
}

const payloadChars = 40_000;
const firstTraces = 40;
const seed = chooseSeed();
let service: TestService;
let amber: Side;
let basil: Side;

before(async () => {
  service = await startTestService({ flags: { 'log-level': 'silent' } });
  amber = await openSide('amber', 1111, 'success');
  basil = await openSide('basil', 2222, 'error');
});
after(() => service.stop());

/** Its first page is over a megabyte long, so that it is streamed. */
async function openSide(mark: string, latencyMs: number, status: Side['status']): Promise<Side> {
  const side: Side = { holder: await service.keyFor(mark), mark, latencyMs, status, id: '' };
  for (let i = 0; i < firstTraces; i++) {
    const input = mark.repeat(payloadChars / mark.length);
    const created = await service.call(side.holder.key, 'POST', '/traces', {
      ...traceOf(side),
      input,
    });
    assert.equal(created.status, 201);
    side.id = created.json.id;
  }
  return side;
}

function traceOf({ mark, latencyMs, status }: Side): object {
  const labels = { model: `${mark}-model`, feature_name: `${mark}-feature`, user_identifier: mark };
  return { ...labels, input: mark, output: mark, latency_ms: latencyMs, status };
}

function spanOfSide({ mark, latencyMs, status }: Side): OtlpSpan {
  return spanOf({
    durationMs: latencyMs,
    attributes: chatAttributes({
      'gen_ai.request.model': `${mark}-model`,
      'gen_ai.agent.name': `${mark}-feature`,
      'user.id': mark,
    }),
    status: { code: status === 'error' ? 2 : 1 },
  });
}

function other(side: Side): Side {
  return side === amber ? basil : amber;
}

/** Every path of the served document that has a parameter. */
async function pathsWithId(): Promise<string[]> {
  const { paths } = (await service.call(null, 'GET', '/openapi.json')).json;
  return Object.keys(paths).filter((path) => path.includes('{'));
}

/** The whole answer with what differs between any two of them taken out. */
function comparable(bytes: Buffer): string {
  const text = bytes.toString('latin1');
  const id = /^x-request-id: (\S+)\r$/m.exec(text)?.[1] ?? '';
  assert.match(id, /^[0-9a-f]{12}-[0-9a-z]+$/, text);
  return text
    .replaceAll(id, '')
    .replace(/^date: .+$/im, '')
    .replace(
      /^content-length: (\d+)/im,
      (_, n: string) => `content-length: ${Number(n) - id.length}`,
    );
}

const missingIds = ['01a1dd3e-281e-7000-815c-7f9185ec75bf', '00000000-0000-0000-0000-000000000000'];
const spellings: readonly ((id: string) => string)[] = [
  (id) => id,
  (id) => id.toUpperCase(),
  (id) => `%${id.charCodeAt(0).toString(16)}${id.slice(1)}`,
  (id) => `${id}?team_id=${amber.holder.teamId}&trace_id=${amber.id}`,
  (id) => `${id}/`,
  (id) => `x/../${id}`,
  (id) => `${id};team_id=${amber.holder.teamId}`,
];

test("on every path with an id and with every method, another team's id gets the bytes of a missing one", async () => {
  const paths = await pathsWithId();
  assert.ok(paths.length >= 1);
  const methods = METHODS.filter((method) => method !== 'CONNECT');
  const [key, ownKey] = [basil.holder.key, amber.holder.key];
  const before = await totalOf(service, amber.holder);
  let seenByOwner = 0;
  for (const path of paths) {
    for (const method of methods) {
      const ask = async (id: string, as: string): Promise<string> => {
        const body = method === 'GET' || method === 'HEAD' ? {} : { body: '{"model":"changed"}' };
        const sent = { method, path: path.replaceAll(/\{[^}]+\}/g, id), key: as, isLast: true };
        return comparable(await exchange(service.url, writeRequest({ ...sent, ...body })));
      };
      for (const spelling of spellings) {
        const foreign = await ask(spelling(amber.id), key);
        for (const id of missingIds) {
          const missing = await ask(spelling(id), key);
          assert.equal(foreign, missing, `${method} ${path} ${spelling(id)}`);
        }
        assert.ok(!foreign.includes('amber'));
        assert.match(foreign, /^HTTP\/1\.1 (40[45]|422) /, `${method} ${path}`);
      }
      if ((await ask(amber.id, ownKey)) !== (await ask(amber.id, key))) seenByOwner++;
    }
  }
  assert.ok(seenByOwner >= 2, 'the owner gets another answer to GET and to HEAD');
  assert.equal(await totalOf(service, amber.holder), before, 'nothing was taken away or added');
});

type Check = (answer: WireAnswer) => void;
type Step = [sent: Written, check: Check];

function okOf(side: Side, look: (json: Answer['json']) => void): Check {
  return ({ status, text }) => {
    assert.equal(status, 200, text.slice(0, 300));
    assert.ok(!text.includes(other(side).mark) && !text.includes(other(side).holder.teamId));
    look(JSON.parse(text));
  };
}

/** One request of a side and what must hold of its answer. */
const steps: readonly ((side: Side) => Step)[] = [
  (side) => [
    { method: 'POST', path: '/traces', body: JSON.stringify(traceOf(side)) },
    ({ status, text }) => {
      assert.equal(status, 201, text);
      const { team_id, model } = JSON.parse(text);
      assert.deepEqual([team_id, model], [side.holder.teamId, `${side.mark}-model`]);
    },
  ],
  (side) => [
    { method: 'POST', path: '/traces/batch', body: JSON.stringify({ traces: [traceOf(side)] }) },
    ({ status, text }) => {
      assert.equal(status, 201, text);
      const [{ team_id, model }] = JSON.parse(text).traces;
      assert.deepEqual([team_id, model], [side.holder.teamId, `${side.mark}-model`]);
    },
  ],
  (side) => [
    { method: 'POST', path: '/v1/traces', body: JSON.stringify(spansRequest([spanOfSide(side)])) },
    ({ status, text }) => assert.deepEqual([status, text], [200, '{}']),
  ],
  ...['?limit=100', '?limit=3&page=2', '?omit=input,output'].map((query) => (side: Side): Step => [
    { path: `/traces${query}` },
    okOf(side, ({ traces }) => {
      assert.ok(traces.length > 0);
      for (const { team_id, model } of traces) {
        assert.deepEqual([team_id, model], [side.holder.teamId, `${side.mark}-model`]);
      }
    }),
  ]),
  (side) => [
    { path: `/traces/${side.id}` },
    okOf(side, ({ id, team_id }) => assert.deepEqual([id, team_id], [side.id, side.holder.teamId])),
  ],
  (side) => [
    { path: `/traces/${side.id}/cost` },
    okOf(side, ({ steps }) => assert.ok(steps.join().includes(`"${side.mark}-model"`))),
  ],
  ...['', '/cost'].map((rest) => (side: Side): Step => [
    { path: `/traces/${other(side).id}${rest}` },
    ({ status, text }) => {
      assert.equal(status, 404);
      assert.ok(!text.includes(other(side).mark));
    },
  ]),
  (side) => [
    { path: '/analytics/overview' },
    okOf(side, ({ avg_latency_ms, success_rate }) => {
      const rate = side.status === 'success' ? 100 : 0;
      assert.deepEqual([avg_latency_ms, success_rate], [side.latencyMs, rate]);
    }),
  ],
  ...(['model', 'feature'] as const).map((name) => (side: Side): Step => [
    { path: `/analytics/by-${name}` },
    okOf(side, (records) => {
      const field = name === 'model' ? 'model' : 'feature_name';
      assert.deepEqual(
        records.map((record: Record<string, unknown>) => [record[field], record['avg_latency_ms']]),
        [[`${side.mark}-${name}`, side.latencyMs]],
      );
    }),
  ]),
  (side) => [
    { path: '/analytics/daily' },
    okOf(side, (days) => {
      for (const { call_count, avg_latency_ms } of days) {
        assert.equal(avg_latency_ms, call_count === 0 ? 0 : side.latencyMs);
      }
    }),
  ],
  () => [{ path: '/traces', key: null }, ({ status }) => assert.ok([401, 429].includes(status))],
];

function randomStep(random: () => number): Step {
  const side = pick(random, [amber, basil]);
  const [sent, check] = pick(random, steps)(side);
  return [{ key: side.holder.key, ...sent }, check];
}

test('two teams whose requests are pipelined over the same connections get no data of each other', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const before = [await totalOf(service, amber.holder), await totalOf(service, basil.holder)];
  const written = { amber: 0, basil: 0 };
  const connections = Array.from({ length: 6 }, () =>
    Array.from({ length: 60 }, () => randomStep(random)),
  );
  await Promise.all(
    connections.map(async (list) => {
      const bytes = list.map(([sent], i) =>
        writeRequest({ ...sent, isLast: i === list.length - 1 }),
      );
      const answers = await exchangeAnswers(service.url, bytes.join(''));
      assert.equal(answers.length, list.length, 'one answer a request, in their order');
      for (const [i, [, check]] of list.entries()) check(answers[i] as WireAnswer);
      const stored = answers.filter(({ status }) => status === 201);
      // The reply to spans does not repeat them.
      const spans = list.filter(([sent]) => sent.path === '/v1/traces');
      for (const [{ body = '' }] of spans) written[body.includes('amber') ? 'amber' : 'basil']++;
      for (const { text } of stored) written[text.includes('amber') ? 'amber' : 'basil']++;
    }),
  );
  assert.ok(written.amber > 5 && written.basil > 5, JSON.stringify(written));
  const after = [await totalOf(service, amber.holder), await totalOf(service, basil.holder)];
  const [amberBefore = 0, basilBefore = 0] = before;
  assert.deepEqual(after, [amberBefore + written.amber, basilBefore + written.basil]);
});

test('two teams that take turns on one keep-alive connection get no data of each other', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed + 1);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ports = new Set<number | undefined>();
  const ask = ({ method = 'GET', path, key, body }: Written): Promise<WireAnswer> =>
    new Promise((resolve, reject) => {
      const headers = {
        ...(key ? { authorization: `Bearer ${key}` } : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      };
      const outgoing = request(`${service.url}${path}`, { method, headers, agent }, (incoming) => {
        const pieces: Buffer[] = [];
        ports.add(incoming.socket.localPort);
        incoming.on('data', (piece: Buffer) => pieces.push(piece));
        incoming.on('end', () => {
          const text = Buffer.concat(pieces).toString();
          resolve({ status: incoming.statusCode ?? 0, head: '', headers: new Headers(), text });
        });
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  const list = Array.from({ length: 150 }, () => randomStep(random));
  await Promise.all(list.map(async ([sent, check]) => check(await ask(sent))));
  agent.destroy();
  assert.equal(ports.size, 1, 'it was one connection');
});

test('after all of this verify finds no difference in either team', async () => {
  const counted = async (side: Side) => [side.holder, await totalOf(service, side.holder)] as const;
  await assertVerified(service, [await counted(amber), await counted(basil)]);
});
