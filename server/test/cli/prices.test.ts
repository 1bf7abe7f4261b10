import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { parseMoment, parseTokens } from '../../src/cli/prices-explain.ts';
import { parseDay, parsePrice } from '../../src/cli/price-flags.ts';
import { withTool } from '../guarantees/crash-lab.ts';
import { assertRefused, startServer, toolInFolder } from './helpers.ts';

const tool = toolInFolder({ after });
const at = (day: number): number => Date.UTC(2026, 10, day, 12) * 1000;

const calls = [
  { model: 'mine', prompt_tokens: 1_000, completion_tokens: 100, started_at: at(1) },
  { model: 'mine', prompt_tokens: 2_000, completion_tokens: 0, started_at: at(5) },
  { model: 'gpt-4o', provider: 'openai', prompt_tokens: 1_000, completion_tokens: 100 },
  {
    model: 'gpt-4o',
    provider: 'openai',
    prompt_tokens: 1_000,
    completion_tokens: 100,
    cost_usd: 9,
  },
];

before(async () => {
  await withTool(tool.path, async (store) => {
    const { team } = await store.ensureTeam('search', 1);
    const drafts = calls.map((fields) => ({
      ...draftTrace({ model: 'm' }),
      started_at: at(2),
      ...fields,
    }));
    await store.append([{ teamId: team.id, drafts }]);
    await store.ensureTeam('other', 1);
  });
});

interface PriceJson {
  model: string;
  team: string | null;
  from: string | null;
  input: string;
  output: string;
  cache_read: string | null;
  set_by: string;
}

interface Sums {
  traces: number;
  changed: number;
  uncosted_before: number;
  uncosted_after: number;
  before_usd: string;
  after_usd: string;
  difference_usd: string;
}

interface RepriceJson {
  dry_run: boolean;
  teams: (Sums & { team: string; run: string | null; models: (Sums & { model: string })[] })[];
}

async function refused(args: readonly string[], code: number, words: RegExp): Promise<void> {
  assertRefused(await tool.run(...args), code, words);
}

const november = ['--from', '2026-11-01', '--to', '2026-11-30'];

describe('own prices', () => {
  test('are set, listed, replaced and removed by model, first day and team', async () => {
    await tool.json('prices', 'set', 'mine', '--input', '2.5', '--output', '10');
    const prices = ['--input', '3', '--output', '12', '--cache-read', '0.000001'];
    const place = ['--from', '2026-11-03', '--team', 'search'];
    const set = await tool.json<PriceJson>('prices', 'set', 'mine', ...prices, ...place);
    assert.deepEqual(
      [set.model, set.team, set.from, set.input],
      ['mine', 'search', '2026-11-03', 3],
    );
    await tool.json('prices', 'set', 'mine', '--input', '2', '--output', '10');
    const list = await tool.json<PriceJson[]>('prices', 'list');
    assert.deepEqual(
      list.map(({ model, team, from, input, output, cache_read: cached }) => [
        model,
        team,
        from,
        input,
        output,
        cached,
      ]),
      [
        ['mine', null, null, '2', '10', null],
        ['mine', 'search', '2026-11-03', '3', '12', '0.000001'],
      ],
    );
    assert.ok(list.every(({ set_by: by }) => by.length > 0));
    const { stdout } = await tool.run('prices', 'list');
    assert.match(
      stdout,
      /^MODEL +TEAM +FROM +INPUT +OUTPUT +CACHE READ +CACHE WRITE +REASONING +SET +BY\n/,
    );
  });

  test('that are not valid are refused with what was expected', async () => {
    const prices = ['--input', '1', '--output', '1'];
    await refused(['prices', 'set', 'm', '--input', '1'], 1, /--input and --output are needed/);
    await refused(['prices', 'set', 'm', ...prices, '--team', 'nobody'], 1, /no team "nobody"/);
    await refused(['prices', 'unset', 'gpt-4o'], 1, /There is no such price.*prices list/);
    for (const text of ['1e3', '-1', '0.0000001', '100001', '1,5', '']) {
      assert.throws(
        () => parsePrice('input', text),
        /--input must be US dollars .* 0 to 100000/,
        text,
      );
    }
    assert.deepEqual(
      ['0', '0.000001', '100000'].map((text) => parsePrice('input', text)),
      [0, 1, 1e11],
    );
    for (const text of ['2026-02-30', '1969-12-31', 'today', '2026-1-1']) {
      assert.throws(() => parseDay('from', text), /--from must be a date, such as/, text);
    }
    assert.throws(() => parseTokens('input'), /--tokens must be counts of input, output/);
    assert.throws(() => parseTokens('input=1,audio=2'), /--tokens must be counts/);
    assert.throws(() => parseMoment('noon'), /--at must be a date or an RFC 3339 time/);
  });
});

test('explain shows each step, the price and the formula', async () => {
  const tokens = ['--tokens', 'input=1000,cache-read=800,output=100'];
  const { stdout } = await tool.run(
    'prices',
    'explain',
    'my-deployment',
    '--provider',
    'azure.ai.openai',
    '--response-model',
    'gpt-4o-2024-08-06',
    '--at',
    '2026-11-04',
    ...tokens,
  );
  assert.equal(
    stdout,
    [
      'A call of 2026-11-04T00:00:00.000000Z',
      '1. Own prices: "gpt-4o-2024-08-06": none',
      '2. Own prices: "my-deployment": none',
      '3. Price list: "gpt-4o-2024-08-06" of azure: azure, model gpt-4o',
      '   200  input tokens       x $2.5 per million',
      '   100  output tokens      x $10 per million',
      '   800  cache read tokens  x $1.25 per million',
      'Cost: $0.0025',
      '',
    ].join('\n'),
  );
  const own = await tool.json<{ computed_usd: number }>(
    'prices',
    'explain',
    'mine',
    '--team',
    'search',
    '--at',
    '2026-11-03',
    ...tokens,
  );
  assert.equal(own.computed_usd, 0.0018000008);
  const tier = ['--provider', 'google', '--tokens', 'input=200001'];
  const large = await tool.run('prices', 'explain', 'gemini-2.5-pro', ...tier);
  assert.match(large.stdout, /x \$2\.5 per million \(more than 200000 input tokens\)\n/);
  const none = await tool.run('prices', 'explain', 'gpt-4o', '--provider', 'ollama', ...tokens);
  assert.match(
    none.stdout,
    /the provider "ollama" is not in it, so "gpt-4o" has no price\nThe call has no cost\.\n$/,
  );
});

describe('reprice', () => {
  test('refuses what it does not understand', async () => {
    await refused(['reprice'], 2, /--from is missing/);
    await refused(['reprice', '--from', 'noon'], 2, /--from must be/);
  });

  test('shows what would change, changes it, leaves a record, and changes nothing the second time', async () => {
    const dry = await tool.json<RepriceJson>('reprice', ...november, '--dry-run');
    const expected = [
      ['mine', 2, 2, 2, 0, '0', '0.009', '0.009'],
      ['gpt-4o', 1, 1, 1, 0, '0', '0.0035', '0.0035'],
    ];
    const rows = ({ teams }: RepriceJson) =>
      teams.find(({ team }) => team === 'search')?.models.map((model) => Object.values(model));
    assert.equal(dry.dry_run, true);
    assert.deepEqual(rows(dry), expected);
    assert.deepEqual(await tool.json('prices', 'history'), []);
    const { stdout } = await tool.run('reprice', ...november);
    assert.match(
      stdout,
      /^Team search\nMODEL +TRACES +CHANGED .*\nmine +2 +2 +2 +0 +0 +0\.009 +0\.009\n/,
    );
    assert.match(stdout, /\n3 of 3 costs changed, in [0-9.]+ s\.\n$/);
    assert.equal((await tool.run('verify')).code, 0);
    const again = await tool.json<RepriceJson>('reprice', ...november);
    assert.deepEqual(
      again.teams.map(({ changed }) => changed),
      [0, 0],
    );
    const history = await tool.json<
      { request: string; run_by: string; changed: number; finished: string | null }[]
    >('prices', 'history', '--team', 'search');
    assert.deepEqual(
      history.map(({ request, changed }) => [request, changed]),
      [
        ['--from 2026-11-01 --to 2026-11-30', 0],
        ['--from 2026-11-01 --to 2026-11-30', 3],
      ],
    );
    assert.ok(history.every(({ finished: end, run_by: by }) => end !== null && by.length > 0));
  });

  test('changes costs of clients only if asked to, and only where there is a price', async () => {
    const included = await tool.json<RepriceJson>(
      'reprice',
      ...november,
      '--include-client',
      '--model',
      'gpt-4o',
      '--team',
      'search',
    );
    const [team] = included.teams;
    assert.deepEqual([team?.traces, team?.changed, team?.difference_usd], [2, 1, '-8.9965']);
    assert.equal((await tool.run('verify')).code, 0);
  });

  test('removes a computed cost if its price is gone, and a server on the same file shows that at once', async (t) => {
    const server = await startServer(t, tool);
    const { key } = await tool.json<{ key: string }>('keys', 'create', '--team', 'search');
    const uncosted = async () => {
      const reply = await fetch(`${server.url}/analytics/query`, {
        headers: { authorization: `Bearer ${key}` },
      });
      const { totals } = (await reply.json()) as {
        totals: { uncosted_calls: number; total_cost_usd: number };
      };
      return [totals.uncosted_calls, totals.total_cost_usd];
    };
    assert.deepEqual(await uncosted(), [0, 0.016]);
    await tool.json('prices', 'unset', 'mine', '--from', '2026-11-03', '--team', 'search');
    await tool.json('prices', 'unset', 'mine');
    await tool.json('reprice', ...november, '--model', 'mine');
    assert.deepEqual(await uncosted(), [2, 0.007]);
    assert.equal((await tool.run('verify')).code, 0);
  });
});
