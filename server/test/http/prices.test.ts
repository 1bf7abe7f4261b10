import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startTestService, us } from '../support/service.ts';
import type { KeyHolder, TestService } from '../support/service.ts';
import { eventually } from '../support/eventually.ts';
import { chatAttributes, spanOf, spansRequest } from '../support/otlp.ts';

const call = { provider: 'openai', prompt_tokens: 1_000, completion_tokens: 100 };
const gpt4o = { model: 'gpt-4o', ...call };

/** Posted traces, and what becomes of their costs. */
const cases: [body: object, cost: number | null, source: string | undefined][] = [
  [gpt4o, 0.0035, 'computed'],
  [{ ...gpt4o, cache_read_tokens: 800 }, 0.0025, 'computed'],
  [{ ...gpt4o, cost_usd: 0.25 }, 0.25, 'client'],
  [{ ...gpt4o, cost_usd: 0 }, 0, 'client'],
  [{ ...call, model: 'o3', started_at: '2025-06-09T12:00:00Z' }, 0.014, 'computed'],
  [{ ...call, model: 'o3' }, 0.0028, 'computed'],
  [{ ...call, model: 'my-deployment' }, null, undefined],
  [{ ...call, model: 'my-deployment', response_model: 'gpt-4o' }, 0.0035, 'computed'],
  [{ model: 'gpt-4o' }, null, undefined],
  [{ ...gpt4o, cost_source: 'client' }, 0.0035, 'computed'],
];

let service: TestService;
let team: KeyHolder;

async function posted(body: object, query = ''): Promise<Record<string, unknown>> {
  const path = `/traces${query}`;
  const { status, text, json } = await service.call(team.key, 'POST', path, body);
  assert.equal(status, 201, text);
  return json as Record<string, unknown>;
}

async function totals(): Promise<Record<string, unknown>> {
  const { json } = await service.call(team.key, 'GET', '/analytics/query');
  return json.totals;
}

describe('without --price-missing-costs', () => {
  before(async () => {
    service = await startTestService();
    team = await service.keyFor();
  });
  after(() => service.stop());

  test('a posted trace is returned as it was sent, without a source of its cost', async () => {
    for (const cost_usd of [null, 0, 0.25]) {
      const trace = await posted({ ...gpt4o, cost_usd, cost_source: 'computed' });
      assert.equal(trace['cost_usd'], cost_usd);
      assert.equal('cost_source' in trace, false);
    }
  });

  test('a span without a cost gets one; one with a cost keeps it; an unknown model has none', async () => {
    const spans = [
      { 'gen_ai.request.model': 'gpt-4o-2024-08-06' },
      { 'gen_ai.request.model': 'gpt-4o', 'gen_ai.usage.cost': 0.5 },
      { 'gen_ai.request.model': 'my-deployment' },
      {
        'gen_ai.request.model': 'my-deployment',
        'gen_ai.response.model': 'gpt-4o-mini-2024-07-18',
      },
    ].map((attributes) =>
      spanOf({
        attributes: chatAttributes({
          'gen_ai.usage.input_tokens': 1_000,
          'gen_ai.usage.output_tokens': 100,
          ...attributes,
        }),
      }),
    );
    const before = await totals();
    const { status, text } = await service.call(
      team.key,
      'POST',
      '/v1/traces',
      spansRequest(spans),
    );
    assert.equal(status, 200, text);
    const { json } = await service.call(team.key, 'GET', '/traces?limit=4');
    assert.deepEqual(
      json.traces.map(({ model, cost_usd, cost_source }: Record<string, unknown>) => [
        model,
        cost_usd,
        cost_source,
      ]),
      [
        ['my-deployment', 0.00021, 'computed'],
        ['my-deployment', null, undefined],
        ['gpt-4o', 0.5, 'client'],
        ['gpt-4o-2024-08-06', 0.0035, 'computed'],
      ],
    );
    const now = await totals();
    assert.equal(now['uncosted_calls'], Number(before['uncosted_calls']) + 1);
    assert.equal(before['total_cost_usd'], 0.25);
    assert.equal(now['total_cost_usd'], 0.75371);
  });

  test('so does a call of a LiteLLM proxy', async () => {
    const payload = {
      id: 'chatcmpl-0123456789abcdef',
      call_type: 'acompletion',
      model: 'azure/gpt-4o',
      custom_llm_provider: 'azure',
      prompt_tokens: 1_000,
      completion_tokens: 100,
      startTime: 1_790_000_000,
      endTime: 1_790_000_001,
    };
    const { status, text } = await service.call(team.key, 'POST', '/ingest/litellm', [payload]);
    assert.equal(status, 200, text);
    const { json } = await service.call(team.key, 'GET', '/traces?limit=1');
    assert.equal(json.traces[0].cost_usd, 0.0035);
    assert.equal(json.traces[0].cost_source, 'computed');
  });

  test('price_missing_costs=true prices the traces of one request, small, large or in a batch', async () => {
    const query = '?price_missing_costs=true';
    const sourced = ({ cost_usd, cost_source }: Record<string, unknown>) => [cost_usd, cost_source];
    for (const [body, cost, source] of cases) {
      const trace = await posted(body, query);
      assert.deepEqual(sourced(trace), [cost, source], JSON.stringify(body));
      // A decoding thread reads a trace of this size.
      const large = await posted({ ...body, input: 'x'.repeat(100_000) }, query);
      assert.deepEqual(sourced(large), [cost, source]);
      const read = await service.call(team.key, 'GET', `/traces/${trace['id'] as string}`);
      assert.deepEqual(read.json, trace);
    }
    const traces = { traces: cases.map(([body]) => body) };
    const batch = `/traces/batch${query}&omit=input`;
    const { json } = await service.call(team.key, 'POST', batch, traces);
    assert.deepEqual(
      json.traces.map(sourced),
      cases.map(([, cost, source]) => [cost, source]),
    );
    const plain = await service.call(team.key, 'POST', '/traces/batch', traces);
    assert.deepEqual(
      plain.json.traces.map(sourced),
      cases.map(([body]) => [(body as { cost_usd?: number }).cost_usd ?? null, undefined]),
    );
  });

  test('price_missing_costs must be true, and nothing is stored if it is not', async () => {
    const before = await totals();
    for (const path of ['/traces', '/traces/batch']) {
      for (const value of ['', '1', 'false', 'TRUE', 'true&price_missing_costs=true']) {
        const body = path === '/traces' ? gpt4o : { traces: [gpt4o] };
        const query = `?price_missing_costs=${value}`;
        const { status, json } = await service.call(team.key, 'POST', `${path}${query}`, body);
        assert.equal(status, 422, query);
        assert.equal(json.errors[0].field, 'price_missing_costs');
      }
    }
    assert.deepEqual(await totals(), before);
  });

  test('a retry with price_missing_costs gets the same reply', async () => {
    const headers = { 'idempotency-key': 'priced-by-request' };
    const path = '/traces?price_missing_costs=true';
    const first = await service.call(team.key, 'POST', path, gpt4o, headers);
    const second = await service.call(team.key, 'POST', path, gpt4o, headers);
    assert.equal(first.json.cost_usd, 0.0035);
    assert.equal(second.text, first.text);
  });
});

describe('with --price-missing-costs', () => {
  before(async () => {
    service = await startTestService({ flags: { 'price-missing-costs': 'true' } });
    team = await service.keyFor();
  });
  after(() => service.stop());

  test('a posted trace without a cost gets one, exactly, and says so', async () => {
    for (const [body, cost, source] of cases) {
      const trace = await posted(body);
      assert.deepEqual(
        [trace['cost_usd'], trace['cost_source']],
        [cost, source],
        JSON.stringify(body),
      );
      const read = await service.call(team.key, 'GET', `/traces/${trace['id'] as string}`);
      assert.deepEqual(read.json, trace);
    }
    const { json } = await service.call(team.key, 'POST', '/traces/batch', {
      traces: cases.map(([body]) => body),
    });
    assert.deepEqual(
      json.traces.map((trace: Record<string, unknown>) => [
        trace['cost_usd'],
        trace['cost_source'],
      ]),
      cases.map(([, cost, source]) => [cost, source]),
    );
    const { uncosted_calls: uncosted, total_cost_usd: cost } = await totals();
    assert.equal(uncosted, 4);
    assert.equal(cost, 0.5596);
  });

  test('a retry with the same Idempotency-Key gets the same reply', async () => {
    const headers = { 'idempotency-key': 'priced' };
    const first = await service.call(team.key, 'POST', '/traces', gpt4o, headers);
    const second = await service.call(team.key, 'POST', '/traces', gpt4o, headers);
    assert.equal(second.text, first.text);
  });

  test('a price that an operator sets is used within a second, by team, model and day, until it is removed', async () => {
    const other = await service.keyFor();
    const rates = {
      input: 1_000_000,
      output: 2_000_000,
      cacheRead: null,
      cacheWrite: null,
      reasoning: null,
    };
    const entry = {
      teamId: null,
      model: 'my-model',
      fromDay: 0,
      rates,
      setAtUs: us('2026-01-01'),
      setBy: 'operator',
    };
    const costOf = async (more: object = {}, key = team.key): Promise<unknown> => {
      const body = { ...call, model: 'my-model', ...more };
      return (await service.call(key, 'POST', '/traces', body)).json.cost_usd;
    };
    const until = (cost: number | null, more: object = {}) =>
      eventually(`a cost of ${cost}`, 120_000, async () => (await costOf(more)) === cost);
    assert.equal(await costOf(), null);
    await service.beside.setPrice(entry);
    await until(0.0012);
    const days = us('2026-03-01') / 86_400_000_000;
    await service.beside.setPrice({
      ...entry,
      teamId: team.teamId,
      fromDay: days,
      rates: { ...rates, cacheRead: 0 },
    });
    await until(0.0002, { cache_read_tokens: 1_000 });
    assert.equal(
      await costOf({ started_at: '2026-02-28T23:59:59Z', cache_read_tokens: 1_000 }),
      0.0012,
    );
    assert.equal(await costOf({ cache_read_tokens: 1_000 }, other.key), 0.0012);
    // It wins over the price list, and over the model that answered.
    await service.beside.setPrice({ ...entry, model: 'gpt-4o' });
    await until(0.0012, { model: 'gpt-4o', response_model: 'gpt-4o-2024-08-06' });
    await service.beside.setPrice({ ...entry, rates: null });
    await service.beside.setPrice({ ...entry, teamId: team.teamId, fromDay: days, rates: null });
    await until(null);
  });
});
