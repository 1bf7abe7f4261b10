import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page, Route } from 'playwright-core';
import { startTestService, temporaryFolder } from '../../server/test/support/service.ts';
import type { TestService } from '../../server/test/support/service.ts';
import { plainTraces, record, recordOne } from './support/seed.ts';
import { openStage, signInLink } from './support/stage.ts';
import type { Visit } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

/** A second server that goes and comes back at the same address, with the same data. */
const folder = temporaryFolder();
let fragile: TestService;
let isUp = false;

async function bringUp(): Promise<void> {
  const port = fragile === undefined ? '0' : new URL(fragile.url).port;
  fragile = await startTestService({ folder: folder.path, flags: { port } });
  isUp = true;
}

async function bringDown(): Promise<void> {
  if (isUp) await fragile.stop();
  isUp = false;
}

before(bringUp);
after(async () => {
  await bringDown();
  folder.remove();
});

/** Whatever happens, there is a heading and there are words. */
async function isNotBlank(page: Page): Promise<void> {
  await page.getByRole('heading').first().waitFor();
  const text = await page.getByRole('main').innerText();
  assert.ok(text.trim().length > 20, `"${text}"`);
}

test(
  'if the server stops, the page says so, keeps the last numbers, and recovers automatically',
  inBrowser(async ({ page, origins }) => {
    origins.push(new URL(fragile.url).origin);
    const { key, keyId } = await fragile.keyFor();
    await record(fragile, key, plainTraces(3));
    await page.goto(await signInLink(fragile, keyId));
    await page.getByRole('table', { name: /^Models/ }).waitFor();
    await bringDown();
    const notice = page.getByRole('status').filter({ hasText: 'Cannot reach the server' });
    await notice.waitFor();
    await page.getByRole('button', { name: /now offline/ }).waitFor();
    await page.getByRole('button', { name: 'Try now' }).waitFor();
    assert.match(await notice.innerText(), /Showing data from \d\d:\d\d:\d\d/);
    assert.match(await page.getByRole('main').innerText(), /gpt-4o/);
    await bringUp();
    await recordOne(fragile, key, { model: 'after-the-pause' });
    await page.getByText('after-the-pause').first().waitFor();
    await notice.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: /now live/ }).waitFor();
  }),
);

test(
  'while the server is down, other views say so, and "Try again" works once it is back',
  inBrowser(async ({ page, origins }) => {
    origins.push(new URL(fragile.url).origin);
    const { key, keyId } = await fragile.keyFor();
    const trace = await recordOne(fragile, key, { input: 'still there' });
    await page.goto(await signInLink(fragile, keyId));
    await page.getByRole('table', { name: /^Models/ }).waitFor();
    await bringDown();
    for (const fragment of ['#/traces', `#/traces/${trace.id}`]) {
      await page.goto(`${fragile.url}/${fragment}`);
      await page.getByRole('alert').getByText('Cannot reach the server').waitFor();
      await isNotBlank(page);
    }
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('alert').getByText('Cannot reach the server').waitFor();
    await bringUp();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('still there').waitFor();
    const [tryNow, live] = [/^Try now$/, /now live/].map((name) =>
      page.getByRole('button', { name }),
    );
    assert.ok(tryNow && live);
    await tryNow.or(live).first().waitFor();
    // It may come back by itself before.
    if (await tryNow.isVisible()) await tryNow.click({ timeout: 2_000 }).catch(() => {});
    await live.waitFor();
  }),
);

test(
  'signing in while the server is unreachable shows an error, and the next attempt works',
  inBrowser(async ({ page, home, key, service }) => {
    await recordOne(service, key);
    await page.goto(home);
    await page.getByLabel('API key').waitFor();
    await page.route('**/session', (route) => route.abort());
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Cannot reach the server').waitFor();
    assert.equal(await page.getByLabel('API key').inputValue(), key, 'it need not be typed again');
    await page.unroute('**/session');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  }),
);

test(
  'a reload whose first requests fail shows an error, and recovers',
  inBrowser(async ({ page, key, service, open }) => {
    await recordOne(service, key);
    await open();
    await page.route('**/analytics/**', (route) => route.abort());
    await page.reload();
    await page.getByRole('alert').getByText('Cannot reach the server').waitFor();
    await isNotBlank(page);
    await page.unroute('**/analytics/**');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('table', { name: /^Models/ }).waitFor();
  }),
);

const problem = (status: number, code: string) => ({
  status,
  contentType: 'application/problem+json',
  headers: { 'x-request-id': 'req-17' },
  body: JSON.stringify({ title: 'No', status, code, detail: 'Words of the server.' }),
});

type Reply = Parameters<Route['fulfill']>[0];

/** This reply to a list and to a trace shows these words, and a button that helps once the server is itself again. */
async function showsWords({ page, go }: Visit, id: string, reply: Reply, words: string) {
  const list = page.getByRole('link', { name: 'Traces', exact: true });
  for (const [pattern, open, seen] of [
    ['**/traces?*', () => list.click(), page.getByRole('table', { name: /^Traces/ })],
    ['**/traces/*', () => go(`#/traces/${id}`), page.getByText('the question')],
  ] as const) {
    await page.route(pattern, (route) => route.fulfill(reply));
    await open();
    const alert = page.getByRole('alert').filter({ hasText: words });
    await alert.getByRole('button', { name: 'Try again' }).waitFor();
    await isNotBlank(page);
    await page.unroute(pattern);
    await alert.getByRole('button', { name: 'Try again' }).click();
    await seen.waitFor();
  }
  await go('#/');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
}

test(
  'errors and unexpected replies show a message and a button, never a blank page',
  inBrowser(async (visit) => {
    const { id } = await recordOne(visit.service, visit.key, { input: 'the question' });
    await visit.open();
    const replies: [reply: Reply, words: string][] = [
      [problem(503, 'store_unavailable'), 'The server cannot read its database'],
      [problem(500, 'something_new'), 'Words of the server.'],
      [{ status: 502, body: '<h1>Bad gateway</h1>' }, ''],
      [{ status: 200, body: '<!doctype html>' }, 'Unexpected reply'],
      [{ status: 200, json: { total: 1 } }, ''],
      [{ status: 200, json: null }, ''],
    ];
    for (const [reply, words] of replies) await showsWords(visit, id, reply, words);
  }),
);

test(
  'the numbers are shown even if the charts cannot be loaded',
  inBrowser(async ({ page, key, service, open }) => {
    await recordOne(service, key, { model: 'without-charts' });
    await page.route('**/assets/chart*', (route) => route.abort());
    await open();
    await page.getByText('without-charts').first().waitFor();
    await page.getByText('The chart could not be loaded').first().waitFor();
    await page.getByRole('group', { name: 'Show the series as' }).getByText('Table').click();
    await page.getByRole('table', { name: /^Calls, errors/ }).waitFor();
  }),
);

test(
  'an unknown address shows "Page not found" and a link to the overview',
  inBrowser(async ({ page, key, service, open }) => {
    await recordOne(service, key);
    await open('#/nowhere/at/all');
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
    await page.getByRole('main').getByRole('link').click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  }),
);

test(
  'after too many failed sign-ins the page says how long to wait',
  inBrowser(async ({ page, home }) => {
    await page.goto(home);
    const sign = page.getByRole('button', { name: 'Sign in' });
    await sign.waitFor();
    await page.route('**/session', (route) =>
      route.fulfill({
        ...problem(429, 'too_many_failed_attempts'),
        headers: { 'retry-after': '17' },
      }),
    );
    await page.getByLabel('API key').fill('tt_wrong');
    await sign.click();
    await page.getByText('Too many failed sign-in attempts').waitFor();
    await eventually(async () =>
      assert.match(await page.getByRole('alert').innerText(), /Wait 1[67] s/),
    );
  }),
);
