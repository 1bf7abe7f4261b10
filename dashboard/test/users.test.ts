import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { QueryReply, TraceInput } from '../../client/src/reading.ts';
import { exactNumber } from './support/numbers.ts';
import { record } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

function rows(page: Page): Locator {
  return page
    .getByRole('table', { name: /^Users/ })
    .locator('tbody')
    .getByRole('row');
}

function names(page: Page): Promise<string[]> {
  return rows(page).getByRole('rowheader').allInnerTexts();
}

function callsOf(user: string | null, count: number, fields: Partial<TraceInput>): TraceInput[] {
  return Array.from({ length: count }, () => ({ model: 'm', user_identifier: user, ...fields }));
}

test(
  'users are listed with cost, calls, errors and p95, in the order of any of them',
  inBrowser(async ({ page, home, service, key, open }) => {
    await record(service, key, [
      ...callsOf('ann', 2, { cost_usd: 5, latency_ms: 10 }),
      ...callsOf('bob', 4, { cost_usd: 1, latency_ms: 60 }),
      ...callsOf('cat', 3, { cost_usd: 2, latency_ms: 30, error_message: 'no' }),
      ...callsOf(null, 1, { cost_usd: 1, latency_ms: 5 }),
    ]);
    await open('#/users');
    const { json } = await service.call(
      key,
      'GET',
      '/analytics/query?last=7d&group_by=user_identifier',
    );
    await eventually(async () => assert.equal(await rows(page).count(), 4));
    for (const row of (json as QueryReply).rows) {
      const name = row.user_identifier ?? 'not set';
      const cells = await rows(page).filter({ hasText: name }).getByRole('cell').all();
      assert.deepEqual(await Promise.all(cells.map(exactNumber)), [
        row.total_cost_usd,
        row.call_count,
        row.error_count,
        row.p95_latency_ms,
      ]);
    }
    const orders: [name: string, order: string, users: string[]][] = [
      ['Cost', '', ['ann', 'cat', 'bob', 'not set']],
      ['Calls', '?order=calls', ['bob', 'cat', 'ann', 'not set']],
      ['Errors', '?order=errors', ['cat', 'not set', 'ann', 'bob']],
      ['p95 latency', '?order=p95', ['bob', 'cat', 'ann', 'not set']],
    ];
    for (const [name, query, users] of orders) {
      await page.getByRole('columnheader', { name }).getByRole('link').click();
      await page.waitForURL(`${home}#/users${query}`);
      await eventually(async () => assert.deepEqual(await names(page), users, name));
      const header = page.getByRole('columnheader', { name });
      assert.equal(await header.getAttribute('aria-sort'), 'descending');
    }
    await rows(page).filter({ hasText: 'cat' }).getByRole('cell').nth(2).getByRole('link').click();
    await page.waitForURL(`${home}#/traces?last=7d&user_identifier=cat&status=error`);
    await page.getByText('3 traces, newest first').waitFor();
  }),
);

test(
  'a search finds users by a part of their name, and any user by the complete one',
  inBrowser(async ({ page, home, service, key, open }) => {
    // More than the API lists: the cheapest ones are past the end.
    await record(
      service,
      key,
      Array.from({ length: 1_050 }, (_, index) => ({
        model: 'm',
        user_identifier: `User-${String(index).padStart(4, '0')}`,
        cost_usd: 2_000 - index,
      })),
    );
    await open('#/users');
    await page.getByText('The 100 users with the highest cost; search to find others.').waitFor();
    await eventually(async () => assert.equal(await rows(page).count(), 101));
    const search = async (text: string): Promise<void> => {
      await page.getByRole('searchbox', { name: 'Search users' }).fill(text);
      await page.getByRole('button', { name: 'Search' }).click();
      await page.waitForURL(`${home}#/users?search=${text}`);
    };
    await search('user-012');
    const tens = Array.from({ length: 10 }, (_, index) => `User-012${index}`);
    await eventually(async () => assert.deepEqual(await names(page), tens));
    await search('User-1049');
    await eventually(async () => assert.deepEqual(await names(page), ['User-1049']));
    await search('nobody');
    await page.getByText('No user matches.').waitFor();
    await page.reload();
    await page.getByText('No user matches.').waitFor();
    await page.getByText(/enter the complete identifier/).waitFor();
  }),
);
