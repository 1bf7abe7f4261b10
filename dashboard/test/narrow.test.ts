import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { plainTraces, record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import type { Visit } from './support/stage.ts';

const { inBrowser } = openStage();

const width = 360;
const phone = { viewport: { width, height: 740 }, hasTouch: true, isMobile: true };

/** Names as long as they may be, without a place to break, and the largest numbers there are. */
const wide = {
  model: 'm'.repeat(255),
  feature_name: 'f'.repeat(255),
  user_identifier: 'u'.repeat(255),
  input: 'i'.repeat(5_000),
  output: JSON.stringify({ ['k'.repeat(300)]: 'v'.repeat(300) }),
  error_message: 'e'.repeat(5_000),
  prompt_tokens: 2_147_483_647,
  completion_tokens: 2_147_483_647,
  latency_ms: 2_147_483_647,
  cost_usd: 999_999.999_999,
};

/** What sticks out to the right of the window, and is in no box that scrolls by itself. */
async function fits(page: Page): Promise<void> {
  const [scrollWidth, windowWidth] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    innerWidth,
  ]);
  assert.ok(scrollWidth !== undefined);
  assert.ok(scrollWidth <= width, `the document is ${scrollWidth} px wide`);
  assert.equal(windowWidth, width, 'the browser did not have to zoom out');
}

/** Each can be pressed: it is in sight, or scrolls into it, and nothing lies over it. */
async function allCanBePressed(place: Locator): Promise<number> {
  const controls = await place.locator('a[href], button:not(:disabled), label:has(input)').all();
  for (const control of controls) {
    if (await control.evaluate((element) => element.closest('a.skip-link') !== null)) continue;
    await control.click({ trial: true, timeout: 3_000 });
    const box = await control.boundingBox();
    assert.ok(box !== null);
    const name = (await control.getAttribute('aria-label')) ?? (await control.innerText());
    assert.ok(box.x >= -1 && box.x + box.width <= width + 1, `${name.slice(0, 40)} at ${box.x} px`);
  }
  return controls.length;
}

async function openAll(visit: Visit): Promise<string> {
  const { service, key, open } = visit;
  await record(service, key, plainTraces(60));
  const trace = await recordOne(service, key, wide);
  await open();
  return trace.id;
}

test(
  'at 360 px no view scrolls sideways, and everything can be pressed',
  inBrowser(async (visit) => {
    const { page, home, go } = visit;
    await page.goto(home);
    await page.getByLabel('API key').waitFor();
    await fits(page);
    assert.ok((await allCanBePressed(page.locator('body'))) >= 2);

    const id = await openAll(visit);
    await page.getByRole('table', { name: /^Models/ }).waitFor();
    await fits(page);
    assert.ok((await allCanBePressed(page.locator('body'))) >= 15, 'the sort buttons too');
    await page.getByRole('group', { name: 'Show the days as' }).getByText('Table').click();
    await page.getByRole('table', { name: /of each day/ }).waitFor();
    await fits(page);

    await go('#/traces');
    await page.getByRole('table').waitFor();
    await fits(page);
    for (const name of ['Next page', 'Last page'])
      await page.getByRole('link', { name }).click({ trial: true });
    await page.getByLabel('Page', { exact: true }).click({ trial: true });
    const row = page.getByRole('row').nth(2);
    for (const words of ['user-60', 'chat', 'Success', '159 ms', '$0.001'])
      assert.ok((await row.innerText()).includes(words), words);

    await go(`#/traces/${id}`);
    await page.getByRole('region', { name: 'Output' }).waitFor();
    await fits(page);
    await allCanBePressed(page.locator('body'));
    await go('#/traces/nonsense');
    await page.getByText('No such trace').waitFor();
    await fits(page);
  }, phone),
);

test(
  'at 360 px a new team finds everything too',
  inBrowser(async ({ page, open }) => {
    await open();
    await page.getByRole('heading', { name: 'Record your first call' }).waitFor();
    await fits(page);
    await allCanBePressed(page.locator('body'));
  }, phone),
);

test(
  'at 360 px a finger opens a trace, turns pages, sorts, and signs out',
  inBrowser(async (visit) => {
    const { page } = visit;
    await openAll(visit);
    const calls = page
      .getByRole('table', { name: /^Models/ })
      .getByRole('columnheader', { name: 'Calls' });
    await calls.getByRole('button').tap();
    assert.equal(await calls.getAttribute('aria-sort'), 'descending');
    await page.getByRole('link', { name: 'Traces', exact: true }).tap();
    await page.getByRole('link', { name: 'Next page' }).tap();
    await page.getByRole('row').nth(2).tap();
    await page.getByRole('region', { name: 'Input' }).getByText('question 10').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).tap();
    await page.getByLabel('API key').waitFor();
  }, phone),
);
