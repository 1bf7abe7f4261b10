import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { Trace } from '../../client/src/api-types.ts';
import { manualClock } from '../../server/test/support/service.ts';
import { exactNumber } from './support/numbers.ts';
import { plainTraces, record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const clock = manualClock(Date.now() * 1000);
const { inBrowser } = openStage({ clock });

const perPage = 50;

function rows(page: Page): Locator {
  return page.getByRole('table', { name: 'Traces, newest first' }).getByRole('row');
}

/** The addresses that the rows lead to, in their order. */
function idsShown(page: Page): Promise<string[]> {
  return rows(page)
    .locator('a[href^="#/traces/"]')
    .evaluateAll((links) => links.map((link) => link.getAttribute('href')?.slice(9) ?? ''));
}

/** The ids of a page, out of all that were stored, oldest first. */
function idsOfPage(stored: readonly Trace[], number: number): string[] {
  const ids = stored.map(({ id }) => id).toReversed();
  return ids.slice((number - 1) * perPage, number * perPage);
}

async function showsPage(page: Page, stored: readonly Trace[], number: number): Promise<void> {
  const wanted = idsOfPage(stored, number);
  await eventually(async () => assert.deepEqual(await idsShown(page), wanted));
}

test(
  'the list is newest first, and each row shows what was recorded',
  inBrowser(async ({ page, service, key, open }) => {
    const stored = await record(service, key, [
      ...plainTraces(3),
      {
        model: 'claude-x',
        feature_name: 'search',
        user_identifier: 'u-9',
        prompt_tokens: 1234,
        completion_tokens: 56,
        latency_ms: 12_345,
        cost_usd: 0.001_234_567,
        error_message: 'The model is overloaded.',
      },
    ]);
    await open('#/traces');
    await showsPage(page, stored, 1);
    const newest = rows(page).nth(1);
    const text = await newest.innerText();
    for (const words of ['claude-x', 'search', 'u-9', 'Error', 'The model is overloaded.'])
      assert.ok(text.includes(words), `${words} in ${text}`);
    const numbers = (await newest.getByRole('cell').all()).slice(-4);
    assert.deepEqual(
      await Promise.all(numbers.map(exactNumber)),
      [1234, 56, 12_345, 0.001_234_567],
    );
  }),
);

test(
  'the pager moves step by step, to a number and to the last page, and each page has its own address',
  inBrowser(async ({ page, home, service, key, open }) => {
    const stored = await record(service, key, plainTraces(3 * perPage + 7));
    await open('#/traces');
    await showsPage(page, stored, 1);
    const step = (name: string): Locator => page.getByRole('link', { name });
    for (const name of ['First page', 'Previous page'])
      assert.equal(await step(name).getAttribute('aria-disabled'), 'true');
    await step('Next page').click();
    await showsPage(page, stored, 2);
    assert.equal(page.url(), `${home}#/traces?page=2`);
    await step('Last page').click();
    await showsPage(page, stored, 4);
    assert.equal((await idsShown(page)).length, 7);
    await page.getByText('151–157 of 157').waitFor();
    for (const name of ['Next page', 'Last page'])
      assert.equal(await step(name).getAttribute('aria-disabled'), 'true');
    await step('Previous page').click();
    await showsPage(page, stored, 3);

    const box = page.getByLabel('Page', { exact: true });
    await box.fill('2');
    await box.press('Enter');
    await showsPage(page, stored, 2);
    // A number past the end is the last page, and nonsense changes nothing.
    await box.fill('999');
    await box.press('Enter');
    await showsPage(page, stored, 4);
    await box.fill('x');
    await box.press('Enter');
    await eventually(async () => assert.equal(await box.inputValue(), '4'));
    await step('First page').click();
    await showsPage(page, stored, 1);
    await page.goBack();
    await showsPage(page, stored, 4);
  }),
);

test(
  'lists never request whole prompts or outputs, nor more rows than they show',
  inBrowser(async ({ page, home, service, key, open, watch }) => {
    const stored = await record(service, key, plainTraces(perPage + 1));
    await open('#/traces');
    await showsPage(page, stored, 1);
    await page.getByRole('link', { name: 'Next page' }).click();
    await showsPage(page, stored, 2);
    const lists = watch.apiCalls(home).filter((path) => path.startsWith('traces'));
    assert.ok(lists.length >= 2);
    for (const path of lists) {
      const query = new URLSearchParams(path.slice(path.indexOf('?')));
      assert.equal(query.get('omit'), 'output', path);
      assert.equal(query.get('preview_chars'), '1000', path);
      assert.equal(query.get('limit'), String(perPage), path);
    }
  }),
);

test(
  'a page number past the end shows a message with a link to the last page',
  inBrowser(async ({ page, service, key, open }) => {
    const stored = await record(service, key, plainTraces(perPage + 3));
    await open('#/traces?page=99');
    await page.getByText('There is no page 99').waitFor();
    await page.getByRole('main').getByRole('link', { name: 'page 2' }).click();
    await showsPage(page, stored, 2);
  }),
);

test(
  'times are relative, and exact on hover',
  inBrowser(
    async ({ page, service, key, open }) => {
      const nowMs = Date.now();
      const ages: [ageMs: number, words: RegExp][] = [
        [400 * 24 * 3_600_000, /^[A-Z][a-z]{2} \d+, \d{4}$/],
        [2 * 24 * 3_600_000 + 60_000, /^2 d ago$/],
        [5 * 3_600_000 + 60_000, /^5 h ago$/],
        [3 * 60_000 + 5_000, /^3 min ago$/],
        [30_000, /^30 s ago$/],
        [0, /^just now$/],
      ];
      const stored: Trace[] = [];
      for (const [ageMs] of ages) {
        clock.set((nowMs - ageMs) * 1000);
        stored.push(await recordOne(service, key));
      }
      await page.clock.setFixedTime(nowMs);
      await open('#/traces');
      await showsPage(page, stored, 1);
      for (const [index, [, words]] of ages.toReversed().entries()) {
        const time = rows(page)
          .nth(index + 1)
          .getByRole('time');
        const at = stored.at(-1 - index)?.created_at ?? '';
        assert.match(await time.innerText(), words);
        assert.equal(await time.getAttribute('datetime'), at);
        const exact = (await time.getAttribute('title')) ?? '';
        assert.ok(exact.includes(at), exact);
        assert.match(exact, /^[A-Z][a-z]{2} \d+, \d{4}, \d\d:\d\d:\d\d\.\d{3} UTC\n/, 'also here');
      }
    },
    { timezoneId: 'UTC' },
  ),
);

test(
  'a row shows when the call began, if that is known, and keeps its place in the list',
  inBrowser(async ({ page, service, key, open }) => {
    const nowMs = Date.now();
    clock.set(nowMs * 1000);
    const started_at = new Date(nowMs - 2 * 86_400_000).toISOString();
    const stored = [await recordOne(service, key), await recordOne(service, key, { started_at })];
    await open('#/traces');
    await showsPage(page, stored, 1);
    const times = rows(page).getByRole('time');
    const shown = await times.evaluateAll((all) =>
      all.map((time) => time.getAttribute('datetime')),
    );
    assert.deepEqual(shown, [stored[1]?.started_at, stored[0]?.created_at]);
    assert.match(await times.first().innerText(), /^2 d ago$/);
  }),
);

test(
  'a click anywhere in a row opens its trace, and so does Enter on its link',
  inBrowser(async ({ page, home, service, key, open }) => {
    const stored = await record(service, key, plainTraces(3));
    await open('#/traces');
    await showsPage(page, stored, 1);
    await rows(page).nth(2).getByRole('cell').last().click();
    await page.getByRole('region', { name: 'Input' }).getByText('question 2').waitFor();
    assert.equal(page.url(), `${home}#/traces/${stored[1]?.id}`);
    await page.goBack();
    await showsPage(page, stored, 1);
    await rows(page).nth(3).getByRole('link').first().focus();
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Input' }).getByText('question 1').waitFor();
  }),
);

test(
  'going back from a trace restores the list and its scroll position',
  inBrowser(async ({ page, home, service, key, open }) => {
    const stored = await record(service, key, plainTraces(2 * perPage));
    await open('#/traces?page=2');
    await showsPage(page, stored, 2);
    await rows(page).nth(40).scrollIntoViewIfNeeded();
    const height = await page.evaluate(() => scrollY);
    assert.ok(height > 300);
    await rows(page).nth(40).getByRole('link').first().click();
    await page.getByRole('region', { name: 'Input' }).waitFor();
    assert.equal(await page.evaluate(() => scrollY), 0);
    await page.goBack();
    assert.equal(page.url(), `${home}#/traces?page=2`);
    await showsPage(page, stored, 2);
    await eventually(async () => assert.equal(await page.evaluate(() => scrollY), height));
    await page.goForward();
    await page.getByRole('link', { name: 'All traces' }).click();
    await showsPage(page, stored, 2);
  }),
);
