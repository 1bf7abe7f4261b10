import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { verifyTeam } from '../../src/tools/verify.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';

const clients = 64;
let service: TestService;

before(async () => {
  service = await startTestService();
});
after(() => service.stop());

const isReplay = ({ headers }: Answer): boolean => headers.get('idempotent-replayed') === 'true';

/** 64 clients start at the same time. */
function atOnce<T>(work: (client: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: clients }, (_, i) => work(i)));
}

async function assertStored({ key, teamId }: KeyHolder, count: number): Promise<void> {
  const [list, overview] = [
    await service.call(key, 'GET', '/traces?limit=1'),
    await service.call(key, 'GET', '/analytics/overview'),
  ];
  assert.deepEqual([list.json.total, overview.json.total_calls], [count, count]);
  assert.deepEqual(await verifyTeam(service.beside, teamId), { traces: count, differences: [] });
}

const requests: readonly [what: string, path: string, body: object, traces: number][] = [
  ['a trace', '/traces', { model: 'm', cost_usd: 0.01, input: 'x'.repeat(3000) }, 1],
  [
    'a batch',
    '/traces/batch',
    { traces: [{ model: 'a' }, { model: '' }, { model: 'b' }, { model: 'c' }] },
    3,
  ],
];

for (const [what, path, body, traces] of requests) {
  test(`${what} that 64 clients send concurrently with one idempotency key is stored once, and all get the same reply`, async () => {
    const team = await service.keyFor();
    const rounds = 4;
    for (let round = 1; round <= rounds; round++) {
      const text = JSON.stringify(body);
      const answers = await atOnce((client) =>
        service.call(team.key, 'POST', path, client % 2 === 0 ? text : gzipSync(text), {
          'idempotency-key': `round-${round}`,
          ...(client % 2 === 0 ? {} : { 'content-encoding': 'gzip' }),
        }),
      );
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201]);
      assert.equal(new Set(answers.map((answer) => answer.text)).size, 1);
      assert.equal(new Set(answers.map(({ headers }) => headers.get('location'))).size, 1);
      assert.equal(answers.filter((answer) => !isReplay(answer)).length, 1, 'one is the first');
      await assertStored(team, round * traces);
    }
  });
}

test('if two bodies race for one idempotency key, the first is stored and the other always refused', async () => {
  const team = await service.keyFor();
  const rounds = 4;
  for (let round = 1; round <= rounds; round++) {
    const answers = await atOnce(async (client) => {
      const model = client % 2 === 0 ? 'left' : 'right';
      const headers = { 'idempotency-key': `race-${round}` };
      return { model, answer: await service.call(team.key, 'POST', '/traces', { model }, headers) };
    });
    const first = answers.find(({ answer }) => answer.status === 201 && !isReplay(answer));
    for (const { model, answer } of answers) {
      const isWinner = model === first?.model;
      assert.equal(answer.status, isWinner ? 201 : 422, answer.text);
      if (isWinner) assert.equal(answer.text, first.answer.text);
      else assert.equal(answer.json.code, 'idempotency_key_reused');
    }
    await assertStored(team, round);
  }
});

test('64 clients that repeat every request, in two teams with the same idempotency keys, store each once per team', async () => {
  const teams = [await service.keyFor(), await service.keyFor()] as const;
  const requestsEach = 3;
  await atOnce(async (client) => {
    for (let i = 0; i < requestsEach; i++) {
      // Each pair of clients shares its keys, and each client sends everything twice.
      const name = `${client >> 1}.${i}`;
      const headers = { 'idempotency-key': name };
      const texts = new Map<string, Set<string>>();
      for (const { key, teamId } of [...teams, ...teams]) {
        const body = { model: 'm', user_identifier: name };
        const answer = await service.call(key, 'POST', '/traces', body, headers);
        assert.deepEqual([answer.status, answer.json.team_id], [201, teamId], answer.text);
        texts.set(teamId, (texts.get(teamId) ?? new Set()).add(answer.text));
        const found = await service.call(key, 'GET', `/traces/${answer.json.id}`);
        assert.equal(found.text, answer.text, 'an acknowledged trace can be read');
      }
      assert.deepEqual(
        [...texts.values()].map(({ size }) => size),
        [1, 1],
      );
    }
  });
  for (const team of teams) await assertStored(team, (clients / 2) * requestsEach);
});

test('with 64 concurrent clients each batch is complete in the next list and sum, and the totals are exact', async () => {
  const shared = await service.keyFor();
  const [batches, items] = [3, 20];
  const ranges: string[][] = [];
  await atOnce(async (client) => {
    const own = await service.keyFor();
    for (let i = 1; i <= batches; i++) {
      const traces = Array.from({ length: items }, (_, n) => ({
        model: `${client}.${i}.${n}`,
        cost_usd: 0.001,
      }));
      const mine = await service.call(own.key, 'POST', '/traces/batch', { traces });
      assert.equal(mine.status, 201, mine.text);
      const list = await service.call(own.key, 'GET', `/traces?limit=${items}`);
      assert.equal(list.json.total, i * items);
      assert.deepEqual(list.json.traces.toReversed(), mine.json.traces);
      const overview = await service.call(own.key, 'GET', '/analytics/overview');
      assert.equal(overview.json.total_cost_usd, (i * items) / 1000);
      const ours = await service.call(shared.key, 'POST', '/traces/batch', { traces });
      ranges.push(ours.json.traces.map(({ id }: { id: string }) => id));
    }
  });
  await assertStored(shared, clients * batches * items);
  const ids = await service.beside.audit(shared.teamId, async ({ traces }) => {
    const found: string[] = [];
    for await (const chunk of traces) found.push(...chunk.map(({ id }) => id));
    return found;
  });
  const placeOf = new Map(ids.map((id, i) => [id, i]));
  for (const range of ranges) {
    const first = placeOf.get(range[0] ?? '') ?? assert.fail('an acknowledged trace is missing');
    assert.deepEqual(ids.slice(first, first + items), range, 'they follow each other');
  }
});
