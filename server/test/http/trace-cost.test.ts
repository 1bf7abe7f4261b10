import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { loadPriceList } from '../../src/core/prices/load-price-list.ts';
import { OwnPrices } from '../../src/core/prices/own-prices.ts';
import { openPricer } from '../../src/core/prices/pricer.ts';
import { RepriceResult } from '../../src/core/reprice.ts';
import { uuidV7 } from '../../src/core/uuid.ts';
import { repriceAll } from '../../src/tools/reprice.ts';
import { eventually } from '../support/eventually.ts';
import { setOwnPrice } from '../support/own-price.ts';
import { startTestService, us } from '../support/service.ts';
import type { KeyHolder, TestService } from '../support/service.ts';
import { assertProblem } from './helpers.ts';

const call = { provider: 'openai', prompt_tokens: 1_000, completion_tokens: 100 };
const gpt4o = { model: 'gpt-4o', ...call };

interface Part {
  kind: string;
  count: number;
  price_usd: number;
  above_input_tokens: number | null;
  usd: number;
}

interface TraceCost {
  cost_usd: number | null;
  cost_source: string | null;
  reason: string | null;
  is_current: boolean;
  at: string;
  steps: string[];
  price?: {
    source: string;
    provider: string | null;
    model: string;
    team_id: string | null;
    from: string | null;
  };
  parts: Part[];
  computed_usd: number | null;
}

let service: TestService;
let team: KeyHolder;

async function posted(body: object): Promise<string> {
  const { status, text, json } = await service.call(team.key, 'POST', '/traces', body);
  assert.equal(status, 201, text);
  return json.id;
}

async function costOf(id: string): Promise<TraceCost> {
  const { status, text, json } = await service.call(team.key, 'GET', `/traces/${id}/cost`);
  assert.equal(status, 200, text);
  return json;
}

function start(flags: Record<string, string> = {}): void {
  before(async () => {
    service = await startTestService({ flags });
    team = await service.keyFor();
  });
  after(() => service.stop());
}

/** What `tracetally reprice` does. */
async function reprice(): Promise<void> {
  const { lastSeq } = await service.beside.counter(team.teamId);
  const entries = await service.beside.priceEntries();
  const run = {
    id: uuidV7(Date.now() * 1000),
    teamId: team.teamId,
    startedAtUs: Date.now() * 1000,
    finishedAtUs: null,
    runBy: 'operator',
    request: { from: null, to: null, model: null, onlyUncosted: false, includeClient: false },
    filter: { fromUs: null, toUs: null, model: null, scope: 'computed' as const },
    doneSeq: 0,
    lastSeq,
    result: new RepriceResult(10),
  };
  await service.beside.addRepriceRun(run);
  const pricer = openPricer(new OwnPrices(entries), await loadPriceList());
  await repriceAll(service.beside, run, {
    pricer,
    isDryRun: false,
    clock: () => Date.now() * 1000,
  });
}

/** A decimal as a whole number of 18 decimals. */
function exact(value: number): bigint {
  const [mantissa = '', exponent = '0'] = String(value).split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return BigInt(whole + fraction) * 10n ** BigInt(18 - fraction.length + Number(exponent));
}

/** The sum of the parts in pico-dollars, rounded half up. */
function sumOf(parts: readonly Part[]): bigint {
  const units = parts.map(({ kind, count, price_usd, usd }) => {
    const product = BigInt(count) * exact(price_usd);
    assert.equal(exact(usd), kind === 'request' ? product : product / 1_000_000n, kind);
    return exact(usd);
  });
  return (units.reduce((sum, one) => sum + one, 0n) + 500_000n) / 1_000_000n;
}

describe('with --price-missing-costs', () => {
  start({ 'price-missing-costs': 'true' });

  test('the parts of a computed cost add up to the stored cost, to the last digit', async () => {
    const google = { provider: 'google', model: 'gemini-2.5-pro', completion_tokens: 7 };
    const calls: [body: object, kinds: string, above: number | null][] = [
      [gpt4o, 'input output', null],
      [{ ...gpt4o, cache_read_tokens: 800, reasoning_tokens: 50 }, 'input output cache_read', null],
      [
        { ...google, prompt_tokens: 200_000, cache_read_tokens: 3 },
        'input output cache_read',
        null,
      ],
      [{ ...google, prompt_tokens: 200_001 }, 'input output', 200_000],
      [{ ...call, provider: 'perplexity', model: 'sonar-pro' }, 'input output request', null],
      [
        { model: 'claude-sonnet-4-5', prompt_tokens: 9, cache_write_tokens: 7 },
        'input cache_write',
        null,
      ],
      [{ ...gpt4o, prompt_tokens: 2_147_483_647, completion_tokens: 0 }, 'input', null],
      [{ ...gpt4o, prompt_tokens: 0, completion_tokens: 0 }, '', null],
    ];
    for (const [body, kinds, above] of calls) {
      const cost = await costOf(await posted(body));
      const what = JSON.stringify(body);
      assert.deepEqual([cost.cost_source, cost.reason, cost.is_current], ['computed', null, true]);
      assert.equal(cost.parts.map(({ kind }) => kind).join(' '), kinds, what);
      assert.equal(cost.parts[0]?.above_input_tokens ?? null, above, what);
      assert.equal(cost.computed_usd, cost.cost_usd, what);
      assert.equal(sumOf(cost.parts), exact(cost.cost_usd ?? -1) / 1_000_000n, what);
      assert.equal(cost.price?.source, 'list', what);
    }
  });

  test('the price is that of the time of the call, with its first day and where it was found', async () => {
    const o3 = { ...call, model: 'my-o3', response_model: 'o3-2025-04-16' };
    const early = await costOf(await posted({ ...o3, started_at: '2025-06-09T12:00:00Z' }));
    const late = await costOf(await posted({ ...o3, started_at: '2025-06-10T12:00:00Z' }));
    const place = { source: 'list', provider: 'openai', model: 'o3', team_id: null };
    assert.deepEqual(early.price, { ...place, from: null });
    assert.deepEqual(late.price, { ...place, from: '2025-06-10' });
    assert.deepEqual(
      [early, late].map(({ at, cost_usd, parts: [input] }) => [at, cost_usd, input?.price_usd]),
      [
        ['2025-06-09T12:00:00.000000Z', 0.014, 10],
        ['2025-06-10T12:00:00.000000Z', 0.0028, 2],
      ],
    );
    assert.deepEqual(late.steps, ['Price list: "o3-2025-04-16" of openai: openai, model o3']);
  });

  test('if prices have changed since, it says so until the trace is priced again', async () => {
    const id = await posted(gpt4o);
    const fromDay = us('2026-03-01') / 86_400_000_000;
    await setOwnPrice(
      service.beside,
      'gpt-4o',
      { input: 1, output: 2, cacheRead: 0 },
      { teamId: team.teamId, fromDay },
    );
    await eventually('the new price', 120_000, async () => !(await costOf(id)).is_current);
    const changed = await costOf(id);
    assert.deepEqual([changed.cost_usd, changed.computed_usd], [0.0035, 0.0012]);
    const place = { provider: null, model: 'gpt-4o', team_id: team.teamId, from: '2026-03-01' };
    assert.deepEqual(changed.price, { source: 'own', ...place });
    assert.deepEqual(changed.steps, ['Own prices: "gpt-4o": for this team, from 2026-03-01 on']);
    await reprice();
    const { is_current: isCurrent, cost_usd, parts } = await costOf(id);
    assert.deepEqual([isCurrent, cost_usd, sumOf(parts)], [true, 0.0012, 1_200_000_000n]);
    await setOwnPrice(service.beside, 'gpt-4o', null, { teamId: team.teamId, fromDay });
    await eventually('the price of the list', 120_000, async () => !(await costOf(id)).is_current);
  });

  test('a cost whose price is gone is not current, and has no parts', async () => {
    await setOwnPrice(service.beside, 'short-lived', { input: 1, output: 2 });
    let id = '';
    await eventually('a cost', 120_000, async () => {
      id = await posted({ ...call, model: 'short-lived' });
      return (await costOf(id)).cost_usd === 0.0012;
    });
    await setOwnPrice(service.beside, 'short-lived', null);
    await eventually('no price', 120_000, async () => (await costOf(id)).computed_usd === null);
    const { cost_usd, reason, is_current: isCurrent, price, parts } = await costOf(id);
    assert.deepEqual(
      [cost_usd, reason, isCurrent, price, parts],
      [0.0012, null, false, undefined, []],
    );
  });

  test('a trace without a cost says why', async () => {
    const cases: [body: object, reason: string, price: string | undefined][] = [
      [{ model: 'gpt-4o' }, 'tokens_unknown', 'gpt-4o'],
      [{ model: 'my-deployment', ...call }, 'price_unknown', undefined],
      [{ ...gpt4o, provider: 'ollama' }, 'price_unknown', undefined],
      [
        { model: 'gpt-4o', cache_read_tokens: 5, completion_tokens: 1 },
        'tokens_unpriced',
        'gpt-4o',
      ],
    ];
    for (const [body, reason, price] of cases) {
      const cost = await costOf(await posted(body));
      assert.deepEqual(
        [cost.cost_usd, cost.cost_source, cost.reason, cost.is_current, cost.computed_usd],
        [null, null, reason, true, null],
        JSON.stringify(body),
      );
      assert.deepEqual([cost.price?.model, cost.parts], [price, []]);
      assert.ok(cost.steps.length > 0);
    }
    const id = await posted({ ...call, model: 'priced-later' });
    await setOwnPrice(service.beside, 'priced-later', { input: 1, output: 2 });
    await eventually('a price', 120_000, async () => (await costOf(id)).computed_usd !== null);
    const later = await costOf(id);
    assert.deepEqual(
      [later.cost_usd, later.reason, later.is_current, later.computed_usd],
      [null, 'priced_later', false, 0.0012],
    );
  });

  test('a cost that was sent stays as it is, whatever the prices are', async () => {
    const { cost_source, reason, is_current, ...cost } = await costOf(
      await posted({ ...gpt4o, cost_usd: 0.25 }),
    );
    assert.deepEqual([cost_source, reason, is_current], ['client', null, true]);
    assert.deepEqual([cost.cost_usd, cost.computed_usd], [0.25, 0.0035]);
  });

  test('prices of another team are neither used nor shown', async () => {
    const other = await service.keyFor();
    await setOwnPrice(service.beside, 'shared', { input: 1, output: 1 });
    await setOwnPrice(service.beside, 'shared', { input: 9, output: 9 }, { teamId: other.teamId });
    const id = await posted({ ...call, model: 'shared' });
    await eventually('a price', 120_000, async () => (await costOf(id)).computed_usd === 0.0011);
    const { text } = await service.call(team.key, 'GET', `/traces/${id}/cost`);
    assert.ok(!text.includes(other.teamId));
    assert.equal(JSON.parse(text).price.team_id, null);
  });
});

describe('without --price-missing-costs', () => {
  start();

  test('a posted trace with a price has no cost because pricing is off; a sent cost has no source', async () => {
    const off = await costOf(await posted(gpt4o));
    assert.deepEqual(
      [off.cost_usd, off.reason, off.is_current, off.computed_usd],
      [null, 'pricing_off', false, 0.0035],
    );
    const sent = await costOf(await posted({ ...gpt4o, cost_usd: 0 }));
    assert.deepEqual([sent.cost_usd, sent.cost_source, sent.is_current], [0, null, true]);
  });

  test('a damaged payload does not hide the cost, and an unknown id gets the same 404 as the trace', async () => {
    const id = await posted({ ...gpt4o, input: 'a prompt' });
    const where =
      service.store === 'sqlite'
        ? `key = (select key from traces where hex(id) = upper('${id.replaceAll('-', '')}'))`
        : `(team_id, seq) = (select team_id, seq from traces where id = '${id}')`;
    const bytes = service.store === 'sqlite' ? `x'61ff62'` : `'\\x61ff62'`;
    await service.sql(`update trace_payloads set input = ${bytes} where ${where}`);
    assert.equal((await service.call(team.key, 'GET', `/traces/${id}`)).status, 500);
    assert.equal((await costOf(id)).computed_usd, 0.0035);
    const stranger = await service.keyFor();
    for (const [key, unknown] of [
      [stranger.key, id],
      [team.key, '00000000-0000-7000-8000-000000000000'],
      [team.key, 'nonsense'],
    ] as const) {
      const [one, cost] = [
        await service.call(key, 'GET', `/traces/${unknown}`),
        await service.call(key, 'GET', `/traces/${unknown}/cost`),
      ];
      assertProblem(cost, 'trace_not_found');
      const { request_id: _one, ...problem } = one.json;
      const { request_id: _cost, ...same } = cost.json;
      assert.deepEqual(same, problem);
    }
  });
});
