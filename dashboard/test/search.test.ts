import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Trace } from '../../client/src/reading.ts';
import { plainTraces, record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

function idsShown(page: Page): Promise<string[]> {
  return page
    .locator('tbody a[href^="#/traces/"]')
    .evaluateAll((links) => links.map((link) => link.getAttribute('href')?.slice(9) ?? ''));
}

async function shows(page: Page, traces: readonly Trace[]): Promise<void> {
  const wanted = traces.map(({ id }) => id);
  await eventually(async () => assert.deepEqual(await idsShown(page), wanted));
}

test(
  'a filtered list is newest first, goes on page by page, and back again',
  inBrowser(async ({ page, service, key, open }) => {
    const stored = await record(
      service,
      key,
      plainTraces(240).map((trace, index) => ({
        ...trace,
        feature_name: index % 2 === 0 ? 'even' : 'odd',
      })),
    );
    const even = stored.filter((trace) => trace.feature_name === 'even').toReversed();
    await open('#/traces?feature_name=even');
    await shows(page, even.slice(0, 50));
    await page.getByText('120 traces, newest first').waitFor();
    await page.getByRole('link', { name: 'Older' }).click();
    await shows(page, even.slice(50, 100));
    await page.getByRole('link', { name: 'Older' }).click();
    await shows(page, even.slice(100));
    await page.getByText('No more traces.').waitFor();
    assert.equal(await page.getByRole('link', { name: 'Older' }).count(), 0);
    await page.goBack();
    await shows(page, even.slice(50, 100));
    // A copied link to a page in the middle.
    await page.reload();
    await shows(page, even.slice(50, 100));
    await page.getByRole('link', { name: 'Newest' }).click();
    await shows(page, even.slice(0, 50));
    // To a trace and back.
    await page.locator('tbody a[href^="#/traces/"]').nth(7).click();
    await page.getByRole('region', { name: 'Input' }).waitFor();
    await page.getByRole('link', { name: 'All traces' }).click();
    await shows(page, even.slice(0, 50));
  }),
);

test(
  'a search finds the text in inputs, outputs and error messages, and says when there is none',
  inBrowser(async ({ page, home, service, key, open }) => {
    await record(service, key, plainTraces(30));
    const found = [
      await recordOne(service, key, { input: 'a needle in the input' }),
      await recordOne(service, key, { output: 'in the output a needle' }),
      await recordOne(service, key, { error_message: 'needle!' }),
    ].toReversed();
    await recordOne(service, key, { input: 'a Needle' });
    await open('#/traces');
    const box = page.getByRole('searchbox', { name: /^Search in input/ });
    await box.fill('needle');
    await box.press('Enter');
    await page.waitForURL(`${home}#/traces?q=needle`);
    await shows(page, found);
    await page.getByText('No more traces.').waitFor();
    await box.fill('& nothing like = this #');
    await box.press('Enter');
    await page.getByText('No trace matches.').waitFor();
    await page.reload();
    assert.equal(await box.inputValue(), '& nothing like = this #');
    await page.getByText('No trace matches.').waitFor();
    await page.getByRole('link', { name: 'Show all traces' }).click();
    await page.getByText('34 traces, newest first').waitFor();
  }),
);

test(
  'a search that takes several requests shows its progress, and goes on by itself',
  inBrowser(async ({ page, service, key, open }) => {
    const stored = await record(service, key, plainTraces(3));
    const [first, , last] = stored;
    let requests = 0;
    // As a large store would answer: a little at a time.
    await page.route('**/traces?*q=rare*', async (route) => {
      requests += 1;
      const cursor = new URL(route.request().url()).searchParams.get('cursor');
      const isLast = cursor === 'c3';
      const traces = cursor === null ? [last] : isLast ? [first] : [];
      await gate[requests - 1]?.promise;
      await route.fulfill({
        json: {
          traces,
          limit: 50,
          next_cursor: isLast ? null : `c${requests}`,
          searched_to: isLast ? null : '2026-11-01T00:00:00.000000Z',
        },
      });
    });
    const gate = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
    gate[0]?.resolve();
    await open('#/traces?q=rare');
    await page.getByText(/^Searching… back to .*Nov 1, 2026|Oct 31, 2026/).waitFor();
    assert.deepEqual(await idsShown(page), [last?.id]);
    for (const { resolve } of gate) resolve();
    await page.getByText('No more traces.').waitFor();
    assert.deepEqual(await idsShown(page), [last?.id, first?.id]);
    assert.equal(requests, 4);
  }),
);

test(
  'a filtered list is live: a trace that matches appears, another one does not',
  inBrowser(async ({ page, service, key, open }) => {
    await record(service, key, plainTraces(3));
    await open('#/traces?feature_name=chat');
    await page.getByText('3 traces, newest first').waitFor();
    await recordOne(service, key, { feature_name: 'other' });
    const fresh = await recordOne(service, key, { feature_name: 'chat' });
    await page.getByText('4 traces, newest first').waitFor();
    await eventually(async () => assert.equal((await idsShown(page))[0], fresh.id));
    assert.equal((await idsShown(page)).length, 4);
  }),
);
