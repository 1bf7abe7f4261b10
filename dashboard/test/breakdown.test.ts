import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type {
  FeatureRecord,
  ModelRecord,
  Overview,
  TraceInput,
} from '../../client/src/api-types.ts';
import { manualClock } from '../../server/test/support/service.ts';
import { exactNumber } from './support/numbers.ts';
import { seenFrames, watchFrames } from './support/frames.ts';
import { record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import type { Visit } from './support/stage.ts';
import { eventually } from './support/wait.ts';
import { recordWeek } from './support/week.ts';

const clock = manualClock(Date.now() * 1000);
const { inBrowser } = openStage({ clock });

interface Answers {
  overview: Overview;
  models: ModelRecord[];
  features: FeatureRecord[];
}

/** A week is recorded and shown; what the API says about it is returned. */
async function openWeek({ service, key, open, page }: Visit): Promise<Answers> {
  await recordWeek(service, key, clock);
  await open();
  await table(page, 'Models').waitFor();
  const ask = async (path: string): Promise<unknown> => (await service.call(key, 'GET', path)).json;
  return {
    overview: (await ask('/analytics/overview')) as Overview,
    models: (await ask('/analytics/by-model')) as ModelRecord[],
    features: (await ask('/analytics/by-feature')) as FeatureRecord[],
  };
}

function table(page: Page, title: 'Models' | 'Features'): Locator {
  return page.getByRole('table', { name: `${title}, sortable` });
}

function namesIn(place: Locator): Promise<string[]> {
  return place.getByRole('rowheader').locator('bdi').allInnerTexts();
}

function header(place: Locator, name: string): Locator {
  return place.getByRole('columnheader', { name });
}

async function ordersOf(place: Locator): Promise<(string | null)[]> {
  const headers = await place.getByRole('columnheader').all();
  return Promise.all(headers.map((one) => one.getAttribute('aria-sort')));
}

type Of<T> = (record: T) => number | string;

/** As the page promises: by the column, and by name where that is equal. */
function namesBy(models: readonly ModelRecord[], of: Of<ModelRecord>, sign: 1 | -1): string[] {
  const compare = (a: number | string, b: number | string): number => (a < b ? -1 : a > b ? 1 : 0);
  return models
    .toSorted((a, b) => sign * compare(of(a), of(b)) || compare(a.model, b.model))
    .map(({ model }) => model);
}

test(
  'every number of the models and features is that of the API; long tables show all on request',
  inBrowser(async (visit) => {
    const { page } = visit;
    const { models, features } = await openWeek(visit);
    const place = table(page, 'Models');
    const byCost = namesBy(models, (m) => m.total_cost_usd, -1);
    assert.deepEqual(await namesIn(place), byCost.slice(0, 8));
    await page.getByRole('button', { name: `Show all ${models.length}` }).click();
    assert.deepEqual(await namesIn(place), byCost);
    await checkRows(
      place,
      models.map((record) => ({ ...record, name: record.model })),
    );
    await checkRows(
      table(page, 'Features'),
      features.map((record) => ({ ...record, name: record.feature_name })),
    );
    await page.getByRole('button', { name: 'Show the first 8' }).click();
    assert.deepEqual(await namesIn(place), byCost.slice(0, 8));
  }),
);

type Named = Omit<ModelRecord, 'model'> & { name: string };

async function checkRows(place: Locator, records: readonly Named[]): Promise<void> {
  for (const record of records) {
    const cells = await place.getByRole('row', { name: record.name }).getByRole('cell').all();
    assert.deepEqual(
      await Promise.all(cells.map(exactNumber)),
      [record.total_cost_usd, record.call_count, record.avg_latency_ms, record.success_rate],
      record.name,
    );
  }
}

test(
  'headings sort by mouse and by keyboard, a second press turns it round, and aria-sort tells which',
  inBrowser(async (visit) => {
    const { page } = visit;
    const { models } = await openWeek(visit);
    const place = table(page, 'Models');
    await page.getByRole('button', { name: `Show all ${models.length}` }).click();
    assert.deepEqual(await ordersOf(place), ['none', 'descending', 'none', 'none', 'none']);
    const columns: [string, Of<ModelRecord>][] = [
      ['Calls', (m) => m.call_count],
      ['Latency', (m) => m.avg_latency_ms],
      ['Success', (m) => m.success_rate],
      ['Cost', (m) => m.total_cost_usd],
    ];
    for (const [name, of] of columns) {
      await header(place, name).getByRole('button').click();
      assert.equal(await header(place, name).getAttribute('aria-sort'), 'descending');
      assert.deepEqual(await namesIn(place), namesBy(models, of, -1), name);
      await header(place, name).getByRole('button').click();
      assert.equal(await header(place, name).getAttribute('aria-sort'), 'ascending');
      assert.deepEqual(await namesIn(place), namesBy(models, of, 1), name);
    }
    await header(place, 'Model').getByRole('button').click();
    assert.deepEqual(await ordersOf(place), ['ascending', 'none', 'none', 'none', 'none']);
    assert.deepEqual(
      await namesIn(place),
      namesBy(models, (m) => m.model, 1),
    );

    await header(place, 'Cost').getByRole('button').focus();
    await page.keyboard.press('Tab');
    for (const [key, order, sign] of [
      ['Enter', 'descending', -1],
      ['Space', 'ascending', 1],
    ] as const) {
      await page.keyboard.press(key);
      await eventually(async () =>
        assert.equal(await header(place, 'Calls').getAttribute('aria-sort'), order),
      );
      assert.deepEqual(
        await namesIn(place),
        namesBy(models, (m) => m.call_count, sign),
      );
    }
    const focused = await page.locator('button:focus').innerText();
    assert.match(focused, /^Calls/, 'the focus stays');
  }),
);

test(
  'bars and percentages are the shares of the cost, or of the calls',
  inBrowser(async (visit) => {
    const { page } = visit;
    const { models, overview } = await openWeek(visit);
    await page.getByRole('button', { name: `Show all ${models.length}` }).click();
    const check = async (of: (model: ModelRecord) => number, whole: number): Promise<void> => {
      for (const model of models) {
        const row = table(page, 'Models').getByRole('row', { name: model.model });
        const share = of(model) / whole;
        assert.ok(Math.abs((await barShare(row)) - share) < 0.01, model.model);
        const words = await row.getByText(/%$/).first().innerText();
        assert.ok(Math.abs(Number(words.replace('%', '')) - share * 100) <= 0.5, words);
      }
    };
    await check((model) => model.total_cost_usd, overview.total_cost_usd);
    await page.getByRole('group', { name: 'Share of' }).getByText('Calls').click();
    await check((model) => model.call_count, overview.total_calls);
  }),
);

/** How much of its track a bar fills, as drawn. */
function barShare(row: Locator): Promise<number> {
  return row.getByRole('rowheader').evaluate((cell) => {
    const bar = cell.querySelector<HTMLElement>('[style*="width"]');
    const track = bar?.parentElement;
    if (!bar || !track) throw new Error('there is no bar');
    return bar.getBoundingClientRect().width / track.getBoundingClientRect().width;
  });
}

test(
  'calls without a feature have a row, and with it the features add up to the totals',
  inBrowser(async (visit) => {
    const { page } = visit;
    const { features, overview } = await openWeek(visit);
    const place = table(page, 'Features');
    const sum = features.reduce((total, feature) => total + feature.call_count, 0);
    const cost = features.reduce((total, feature) => total + feature.total_cost_usd, 0);
    const rest = place.getByRole('row', { name: 'unlabelled' });
    assert.equal(await exactNumber(rest.getByRole('cell').nth(1)), overview.total_calls - sum);
    const restCost = Math.round((overview.total_cost_usd - cost) * 1e6) / 1e6;
    assert.equal(await exactNumber(rest.getByRole('cell').nth(0)), restCost);
  }),
);

test(
  'the row of calls without a feature takes its place in every order',
  inBrowser(async ({ page, service, key, open }) => {
    const calls = (count: number, feature: string | null, costUsd: number): TraceInput[] =>
      Array.from({ length: count }, () => ({
        model: 'm',
        feature_name: feature,
        cost_usd: costUsd,
        latency_ms: 10,
      }));
    await record(service, key, [
      ...calls(3, 'search', 1),
      ...calls(2, null, 4),
      ...calls(1, 'zoo', 2),
    ]);
    await open();
    const place = table(page, 'Features');
    await place.waitFor();
    const orders: [column: string, names: string[]][] = [
      ['Calls', ['search', 'unlabelled', 'zoo']],
      ['Calls', ['zoo', 'unlabelled', 'search']],
      ['Cost', ['unlabelled', 'search', 'zoo']],
      ['Cost', ['zoo', 'search', 'unlabelled']],
      ['Feature', ['search', 'unlabelled', 'zoo']],
      ['Feature', ['zoo', 'unlabelled', 'search']],
      // Its latency is not known.
      ['Latency', ['search', 'zoo', 'unlabelled']],
    ];
    for (const [column, names] of orders) {
      await header(place, column).getByRole('button').click();
      assert.deepEqual(await namesIn(place), names, column);
    }
  }),
);

test(
  'a feature that is itself called "unlabelled" stays apart from the rest',
  inBrowser(async ({ page, service, key, open }) => {
    await recordOne(service, key, { feature_name: 'unlabelled', cost_usd: 1 });
    await recordOne(service, key, { feature_name: null, cost_usd: 3 });
    await open();
    const place = table(page, 'Features');
    await place.waitFor();
    const costs = await place.getByRole('row').getByRole('cell', { name: '$' }).all();
    assert.deepEqual(await Promise.all(costs.map(exactNumber)), [3, 1]);
  }),
);

/** Traces with as many models and features, the first names with the most calls: 3 calls, 2 calls, then one each. */
async function recordNames({ service, key }: Visit, names: number, unlabelled = 0): Promise<void> {
  const name = (index: number): string => `name-${String(index).padStart(4, '0')}`;
  const indexes = [...Array.from({ length: names }, (_, index) => index), 0, 0, 1];
  await record(service, key, [
    ...indexes.map((index) => ({ model: name(index), feature_name: name(index), cost_usd: 0.25 })),
    ...Array.from({ length: unlabelled }, () => ({ model: name(0), cost_usd: 0.25 })),
  ]);
}

/** Cost and calls of every row, the last one included, by name. */
async function shownSums(place: Locator): Promise<{ calls: number; costUsd: number }> {
  return place.getByRole('row').evaluateAll((rows) => {
    const sums = { calls: 0, costUsd: 0 };
    for (const row of rows) {
      const [cost, calls] = [...row.querySelectorAll('td')].map((cell) =>
        Number((cell.textContent ?? '').replaceAll(/[$,]/g, '')),
      );
      sums.costUsd += cost ?? 0;
      sums.calls += calls ?? 0;
    }
    return sums;
  });
}

test(
  'of very many names the page asks for the top 100, and shows the others as one row',
  inBrowser(async (visit) => {
    const { page, home, watch, t, open, go } = visit;
    await recordNames(visit, 3_000, 40);
    await open('#/traces');
    await page.getByRole('table').waitFor();
    await watchFrames(page);
    const since = watch.requests.length;
    await go('#/');
    for (const [title, other] of [
      ['Models', 'other'],
      ['Features', 'other and unlabelled'],
    ] as const) {
      const place = table(page, title);
      await place.waitFor();
      const region = page.getByRole('region', { name: title });
      await region.getByRole('button', { name: 'Show all 100' }).click();
      const names = await namesIn(place);
      assert.deepEqual(names.slice(0, 3), ['name-0000', 'name-0001', 'name-0002']);
      assert.equal(names.length, 101);
      assert.equal(names.at(-1), other);
      assert.deepEqual(await shownSums(place), { calls: 3_043, costUsd: 760.75 });
    }
    const asked = watch.apiCalls(home, since).filter((path) => path.includes('/by-'));
    assert.deepEqual(asked.sort(), [
      'analytics/by-feature?limit=100',
      'analytics/by-model?limit=100',
    ]);
    const { longestTaskMs } = await seenFrames(page);
    t.diagnostic(`longest task ${longestTaskMs.toFixed(0)} ms`);
    assert.ok(longestTaskMs < 500, `the page was blocked for ${longestTaskMs} ms`);
  }),
);

test(
  'no row for others is shown if all names are listed',
  inBrowser(async (visit) => {
    const { page, open } = visit;
    await recordNames(visit, 100);
    await open();
    for (const title of ['Models', 'Features'] as const) {
      await table(page, title).waitFor();
      const region = page.getByRole('region', { name: title });
      await region.getByRole('button', { name: 'Show all 100' }).click();
      assert.equal((await namesIn(table(page, title))).length, 100);
    }
  }),
);

test(
  'a model that is itself called "other" stays apart from the others',
  inBrowser(async (visit) => {
    const { page, service, key, open } = visit;
    await recordNames(visit, 101);
    await record(
      service,
      key,
      Array.from({ length: 9 }, () => ({ model: 'other' })),
    );
    await open();
    const place = table(page, 'Models');
    await place.waitFor();
    await header(place, 'Calls').getByRole('button').click();
    const names = await namesIn(place);
    assert.deepEqual([names[0], names.at(-1)], ['other', 'other']);
    const calls = await place.getByRole('row', { name: 'other' }).all();
    const numbers = calls.map((row) => exactNumber(row.getByRole('cell').nth(1)));
    assert.deepEqual(await Promise.all(numbers), [9, 2]);
  }),
);
