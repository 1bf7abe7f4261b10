import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { TraceInput } from '../../client/src/api-types.ts';
import { chatAttributes, spanOf, spansRequest } from '../../server/test/support/otlp.ts';
import { figure } from './support/figures.ts';
import { exactText } from './support/numbers.ts';
import { record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

/** The cost cell of the row with this name; the column is counted without the row header. */
function costCell(page: Page, title: RegExp, name: string, column: number): Locator {
  const row = page.getByRole('table', { name: title }).getByRole('row', { name });
  return row.getByRole('cell').nth(column);
}

async function showsNoCost(place: Locator): Promise<void> {
  await place.getByText('no cost').first().waitFor();
  assert.match(
    await exactText(place),
    /^(This call was|These calls were) recorded without cost_usd/,
  );
  assert.doesNotMatch(await place.innerText(), /\$/);
}

test(
  'a total, a model, a feature and a day whose calls have no cost show "no cost" and why, never $0.00',
  inBrowser(async ({ page, service, key, open }) => {
    await record(service, key, [
      { model: 'free', feature_name: 'chat' },
      { model: 'free', feature_name: 'chat' },
    ]);
    await open();
    await showsNoCost(figure(page, 'Cost').locator('dd').first());
    await showsNoCost(costCell(page, /^Models/, 'free', 0));
    await showsNoCost(costCell(page, /^Features/, 'chat', 0));
    await page.getByRole('group', { name: 'Show the series as' }).getByText('Table').click();
    const today = page.getByRole('table', { name: /^Calls, errors/ }).getByRole('row');
    await showsNoCost(today.nth(1).getByRole('cell').nth(2));
    // A day without calls has cost nothing.
    assert.equal(await today.nth(2).getByRole('cell').nth(2).innerText(), '$0.00');
  }),
);

test(
  'a call without a cost shows "no cost", and a call that cost nothing shows $0.00, in the list and in the trace',
  inBrowser(async ({ page, service, key, open, go }) => {
    const without = await recordOne(service, key, { model: 'without' });
    const free = await recordOne(service, key, { model: 'free', cost_usd: 0 });
    await open('#/traces');
    await showsNoCost(costCell(page, /^Traces/, 'without', 8));
    assert.equal(await costCell(page, /^Traces/, 'free', 8).innerText(), '$0.00');
    const fact = page
      .getByRole('main')
      .locator('dl > div', { has: page.getByText('Cost', { exact: true }) })
      .locator('dd');
    await go(`#/traces/${without.id}`);
    await showsNoCost(fact);
    await go(`#/traces/${free.id}`);
    await page.getByText(free.id).waitFor();
    await eventually(async () => assert.equal(await fact.innerText(), '$0.00'));
  }),
);

test(
  'a trace says whether its cost was computed or sent',
  inBrowser(async ({ page, service, key, open, go }) => {
    const spans = [chatAttributes(), chatAttributes({ 'gen_ai.usage.cost': 0.5 })].map(
      (attributes) => spanOf({ attributes }),
    );
    const { status } = await service.call(key, 'POST', '/v1/traces', spansRequest(spans));
    assert.equal(status, 200);
    const { json } = await service.call(key, 'GET', '/traces');
    const [sent, computed] = json.traces as { id: string }[];
    const fact = page
      .getByRole('main')
      .locator('dl > div', { has: page.getByText('Cost', { exact: true }) })
      .locator('dd');
    await open(`#/traces/${computed?.id}`);
    await eventually(async () => assert.match(await fact.innerText(), /computed from the tokens$/));
    await go(`#/traces/${sent?.id}`);
    await eventually(async () => assert.match(await fact.innerText(), /sent by the app$/));
  }),
);

test(
  'while no call has a cost, the overview says how costs are recorded',
  inBrowser(async ({ page, service, key, open }) => {
    await recordOne(service, key);
    await open();
    const hint = page.getByText('No call has a cost yet');
    await hint.waitFor();
    const words = await page.getByRole('main').innerText();
    for (const part of ['cost_usd', 'price_missing_costs', 'docs/prices.md'])
      assert.ok(words.includes(part), part);
    await recordOne(service, key, { cost_usd: 0.25 });
    await hint.waitFor({ state: 'detached' });
  }),
);

const amounts = [1_234.5, 0.004_2, 0.000_002, 20, null, 0.15];

function withAmounts(): TraceInput[] {
  return amounts.map((amount, index) => ({
    model: `model-${index}`,
    feature_name: index === 2 ? null : `feature-${index}`,
    cost_usd: amount,
  }));
}

/** For each cost that is shown in the table: the text, where its decimal point is, and where it ends. */
function pointsIn(table: Locator): Promise<{ text: string; point: number; end: number }[]> {
  return table.locator('tbody td').evaluateAll((cells) =>
    cells.flatMap((cell) => {
      const node = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode();
      const text = node?.textContent ?? '';
      const at = text.indexOf('.');
      if (node === null || !text.includes('$') || at === -1) return [];
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      const point = range.getBoundingClientRect().left;
      range.setEnd(node, text.length);
      return [{ text, point, end: range.getBoundingClientRect().right }];
    }),
  );
}

async function pointsLineUp(table: Locator, atLeast: number): Promise<void> {
  await table.waitFor();
  const costs = await pointsIn(table);
  assert.ok(costs.length >= atLeast, `${costs.length} costs`);
  const [first] = costs;
  for (const { text, point, end } of costs) {
    assert.ok(Math.abs(point - (first?.point ?? 0)) < 0.5, `the point of ${text} is at ${point}`);
    assert.ok(Math.abs(end - (first?.end ?? 0)) < 0.5, `${text} ends at ${end}`);
  }
}

for (const width of [1280, 360]) {
  test(
    `at ${width} px the costs of every table line up on the decimal point, right-aligned`,
    inBrowser(
      async ({ page, service, key, open, go }) => {
        await record(service, key, withAmounts());
        await open();
        await pointsLineUp(page.getByRole('table', { name: /^Models/ }), 5);
        await pointsLineUp(page.getByRole('table', { name: /^Features/ }), 5);
        await page.getByRole('group', { name: 'Show the series as' }).getByText('Table').click();
        await pointsLineUp(page.getByRole('table', { name: /^Calls, errors/ }), 7);
        await go('#/traces');
        await pointsLineUp(page.getByRole('table', { name: /^Traces/ }), 5);
      },
      { viewport: { width, height: 800 } },
    ),
  );
}
