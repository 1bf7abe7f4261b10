import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { QueryReply, QueryRow, QueryTotals, TraceInput } from '../../client/src/reading.ts';
import { manualClock } from '../../server/test/support/service.ts';
import { exactNumber } from './support/numbers.ts';
import { recordNames } from './support/names.ts';
import { record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import type { Visit } from './support/stage.ts';
import { eventually } from './support/wait.ts';
import { recordWeek } from './support/week.ts';

const clock = manualClock(Date.now() * 1000);
const { inBrowser } = openStage({ clock });

interface Answers {
  totals: QueryTotals;
  models: Named[];
  features: Named[];
}

type Named = QueryTotals & { name: string };

function namedBy(field: 'model' | 'feature_name', rows: readonly QueryRow[]): Named[] {
  return rows.map((row) => ({ ...row, name: row[field] ?? 'not set' }));
}

/** A week is recorded and shown; what the API says about it is returned. */
async function openWeek({ service, key, open, page }: Visit): Promise<Answers> {
  await recordWeek(service, key, clock);
  await open();
  await table(page, 'Models').waitFor();
  const ask = async (field: string): Promise<QueryReply> =>
    (await service.call(key, 'GET', `/analytics/query?last=7d&group_by=${field}`)).json;
  const [models, features] = [await ask('model'), await ask('feature_name')];
  return {
    totals: models.totals,
    models: namedBy('model', models.rows),
    features: namedBy('feature_name', features.rows),
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

type Of = (record: Named) => number | string | null;

/** Sorted as the page does: by the column, then by name. */
function namesBy(models: readonly Named[], of: Of, sign: 1 | -1): string[] {
  const compare = (a: ReturnType<Of>, b: ReturnType<Of>): number =>
    (a ?? '') < (b ?? '') ? -1 : (a ?? '') > (b ?? '') ? 1 : 0;
  return models
    .toSorted((a, b) => sign * compare(of(a), of(b)) || compare(a.name, b.name))
    .map(({ name }) => name);
}

test(
  'all numbers of models and features match the API, a button shows all rows of a long table, and calls without a feature have a row, with which the features add up to the totals',
  inBrowser(async (visit) => {
    const { page } = visit;
    const { models, features, totals } = await openWeek(visit);
    const unset = features.filter(({ name }) => name === 'not set');
    assert.equal(unset.length, 1);
    const { calls, costUsd } = await shownSums(table(page, 'Features'));
    assert.equal(calls, totals.call_count);
    assert.ok(Math.abs(costUsd - totals.total_cost_usd) < 0.001, `${costUsd}`);
    const place = table(page, 'Models');
    const byCost = namesBy(models, (m) => m.total_cost_usd, -1);
    assert.deepEqual(await namesIn(place), byCost.slice(0, 8));
    await page.getByRole('button', { name: `Show all ${models.length}` }).click();
    assert.deepEqual(await namesIn(place), byCost);
    await checkRows(place, models);
    await checkRows(table(page, 'Features'), features);
    await page.getByRole('button', { name: 'Show the first 8' }).click();
    assert.deepEqual(await namesIn(place), byCost.slice(0, 8));
  }),
);

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
  'column headings sort by mouse and keyboard, a second press reverses the order, and aria-sort is set',
  inBrowser(async (visit) => {
    const { page } = visit;
    const { models } = await openWeek(visit);
    const place = table(page, 'Models');
    await page.getByRole('button', { name: `Show all ${models.length}` }).click();
    assert.deepEqual(await ordersOf(place), ['none', 'descending', 'none', 'none', 'none']);
    const columns: [string, Of][] = [
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
      namesBy(models, (m) => m.name, 1),
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
  'bars and percentages show the share of the cost or of the calls',
  inBrowser(async (visit) => {
    const { page } = visit;
    const { models, totals } = await openWeek(visit);
    await page.getByRole('button', { name: `Show all ${models.length}` }).click();
    const check = async (of: (model: Named) => number, whole: number): Promise<void> => {
      for (const model of models) {
        const row = table(page, 'Models').getByRole('row', { name: model.name });
        const share = of(model) / whole;
        assert.ok(Math.abs((await barShare(row)) - share) < 0.01, model.name);
        const words = await row.getByText(/%$/).first().innerText();
        assert.ok(Math.abs(Number(words.replace('%', '')) - share * 100) <= 0.5, words);
      }
    };
    await check((model) => model.total_cost_usd, totals.total_cost_usd);
    await page.getByRole('group', { name: 'Share of' }).getByText('Calls').click();
    await check((model) => model.call_count, totals.call_count);
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
  'the row of calls without a feature takes its place in every order',
  inBrowser(async ({ page, service, key, open }) => {
    const calls = (count: number, feature: string | null, costUsd: number): TraceInput[] =>
      Array.from({ length: count }, () => ({
        model: 'm',
        feature_name: feature,
        cost_usd: costUsd,
        latency_ms: costUsd * 10,
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
      ['Calls', ['search', 'not set', 'zoo']],
      ['Calls', ['zoo', 'not set', 'search']],
      ['Cost', ['not set', 'search', 'zoo']],
      ['Cost', ['zoo', 'search', 'not set']],
      ['Feature', ['not set', 'search', 'zoo']],
      ['Feature', ['zoo', 'search', 'not set']],
      ['Latency', ['not set', 'zoo', 'search']],
    ];
    for (const [column, names] of orders) {
      await header(place, column).getByRole('button').click();
      assert.deepEqual(await namesIn(place), names, column);
    }
  }),
);

test(
  'a feature named "not set" is a row of its own',
  inBrowser(async ({ page, service, key, open }) => {
    await recordOne(service, key, { feature_name: 'not set', cost_usd: 1 });
    await recordOne(service, key, { feature_name: null, cost_usd: 3 });
    await open();
    const place = table(page, 'Features');
    await place.waitFor();
    const costs = await place.getByRole('row').getByRole('cell', { name: '$' }).all();
    assert.deepEqual(await Promise.all(costs.map(exactNumber)), [3, 1]);
  }),
);

/** Cost and calls of every row, the last one included, by name. */
async function shownSums(place: Locator): Promise<{ calls: number; costUsd: number }> {
  return place.getByRole('row').evaluateAll((rows) => {
    const sums = { calls: 0, costUsd: 0 };
    for (const row of rows) {
      // The short form is hidden from screen readers, the exact one from eyes.
      const exact = (cell: Element): string =>
        cell.querySelector('.visually-hidden')?.textContent ?? cell.textContent ?? '';
      const [cost, calls] = [...row.querySelectorAll('td')].map((cell) =>
        Number(exact(cell).replaceAll(/[$,]/g, '')),
      );
      sums.costUsd += cost ?? 0;
      sums.calls += calls ?? 0;
    }
    return sums;
  });
}

test(
  'with very many names the page loads the top 100 and shows the others as one row',
  inBrowser(async (visit) => {
    const { page, home, watch, open, go } = visit;
    await recordNames(visit, 3_000, 40);
    await open('#/traces');
    await page.getByRole('table').waitFor();
    const since = watch.requests.length;
    await go('#/');
    for (const title of ['Models', 'Features'] as const) {
      const place = table(page, title);
      await place.waitFor();
      const region = page.getByRole('region', { name: title });
      await region.getByRole('button', { name: 'Show all 100' }).click();
      const names = await namesIn(place);
      const first = title === 'Models' ? ['name-0000'] : ['not set', 'name-0000'];
      assert.deepEqual(names.slice(0, first.length), first);
      assert.equal(names.length, 101);
      assert.equal(names.at(-1), 'other');
      assert.deepEqual(await shownSums(place), { calls: 3_043, costUsd: 760.75 });
    }
    const asked = watch.apiCalls(home, since).filter((path) => /group_by/.test(path));
    const limits = asked.map((path) => Number(/limit=(\d+)/.exec(path)?.[1]));
    assert.deepEqual(
      limits.toSorted((a, b) => a - b),
      [6, 100, 100],
    );
  }),
);

test(
  'there is no row for others if all names are listed',
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
  'a model named "other" is a row of its own',
  inBrowser(async (visit) => {
    const { page, service, key, open } = visit;
    await recordNames(visit, 101);
    await record(
      service,
      key,
      Array.from({ length: 9 }, () => ({ model: 'other' })),
    );
    await open('#/?share=calls');
    const place = table(page, 'Models');
    await place.waitFor();
    const names = await namesIn(place);
    assert.deepEqual([names[0], names.at(-1)], ['other', 'other']);
    const calls = await place.getByRole('row', { name: 'other' }).all();
    const numbers = calls.map((row) => exactNumber(row.getByRole('cell').nth(1)));
    assert.deepEqual(await Promise.all(numbers), [9, 2]);
  }),
);
