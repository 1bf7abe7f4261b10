import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
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
  environment: 'v'.repeat(255),
  provider: 'p'.repeat(255),
  response_model: 'r'.repeat(255),
  session_id: 's'.repeat(255),
  run_id: 'n'.repeat(255),
  error_type: 't'.repeat(255),
  metadata: { ['k'.repeat(64)]: 'v'.repeat(255) },
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

/** What a finger cannot reach, though it scrolls there: out of the window, or under something else. Names what it looked at, too. */
async function press(page: Page): Promise<{ reached: number; unreached: string[] }> {
  return page.evaluate((widthPx) => {
    const controls = document.querySelectorAll('a[href], button:enabled, label:has(input)');
    // What is there for the keyboard alone is out of sight until it has the focus.
    const all = [...controls].filter((control) => control.textContent !== 'Skip to content');
    const isReached = (control: Element): boolean => {
      control.scrollIntoView({ block: 'center', behavior: 'instant' });
      const box = control.getBoundingClientRect();
      const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
      const isHit = hit !== null && (control.contains(hit) || hit.contains(control));
      return isHit && box.width > 0 && box.left >= -1 && box.right <= widthPx + 1;
    };
    const unreached = all.filter((control) => !isReached(control));
    scrollTo(0, 0);
    const nameOf = (control: Element): string =>
      control.getAttribute('aria-label') ?? control.textContent ?? '';
    return { reached: all.length - unreached.length, unreached: unreached.map(nameOf) };
  }, width);
}

async function allCanBePressed(page: Page, atLeast: number): Promise<void> {
  const { reached, unreached } = await press(page);
  assert.deepEqual(unreached, []);
  assert.ok(reached >= atLeast, `${reached} controls`);
}

async function recordAll({ service, key }: Visit): Promise<string> {
  await record(service, key, plainTraces(60));
  const trace = await recordOne(service, key, wide);
  return trace.id;
}

test(
  'at 360 px no view scrolls sideways, and every control can be tapped',
  inBrowser(async (visit) => {
    const { page, home, go } = visit;
    await page.goto(home);
    await page.getByLabel('API key').waitFor();
    await fits(page);
    await allCanBePressed(page, 2);

    await visit.open();
    await page.getByText('Waiting for the first trace').waitFor();
    await fits(page);
    await allCanBePressed(page, 8);

    const id = await recordAll(visit);
    await page.getByRole('table', { name: /^Models/ }).waitFor();
    await fits(page);
    await allCanBePressed(page, 20);
    await page.getByRole('group', { name: 'Show the series as' }).getByText('Table').click();
    await page.getByRole('table', { name: /^Calls, errors/ }).waitFor();
    await fits(page);

    await page
      .getByRole('combobox', { name: 'Time range' })
      .selectOption({ label: 'Custom dates…' });
    await page.getByLabel('First day').waitFor();
    await fits(page);
    const filters = new URLSearchParams({
      model: wide.model,
      feature_name: wide.feature_name,
      user_identifier: wide.user_identifier,
      environment: wide.environment,
      status: 'error',
    });
    for (const view of ['#/', '#/users', '#/traces']) {
      await go(`${view}?${filters.toString()}`);
      await page.getByRole('list', { name: 'Filters' }).waitFor();
      await page.getByRole('table').first().waitFor();
      await fits(page);
      await allCanBePressed(page, 15);
      await page.getByRole('button', { name: 'Filter', exact: true }).click();
      await page.getByRole('form', { name: 'Add a filter' }).waitFor();
      await fits(page);
      await page.keyboard.press('Escape');
    }

    await go('#/traces');
    await page.getByRole('table').waitFor();
    await fits(page);
    await allCanBePressed(page, 55);
    const row = page.getByRole('row').nth(2);
    for (const words of ['user-60', 'chat', 'Success', '159 ms', '$0.001'])
      assert.ok((await row.innerText()).includes(words), words);

    await go(`#/traces/${id}`);
    await page.getByRole('region', { name: 'Output' }).waitFor();
    await page.getByRole('table', { name: /^Calls of this/ }).waitFor();
    await fits(page);
    await allCanBePressed(page, 12);
    await go('#/traces/nonsense');
    await page.getByText('Trace not found').waitFor();
    await fits(page);
  }, phone),
);

test(
  'at 360 px taps open a trace, change the page, sort, and sign out',
  inBrowser(async (visit) => {
    const { page } = visit;
    await recordAll(visit);
    await visit.open();
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
