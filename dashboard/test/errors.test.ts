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
  'a server that stops is told, what is known stays, and the page recovers by itself',
  inBrowser(async ({ page, origins }) => {
    origins.push(new URL(fragile.url).origin);
    const { key, keyId } = await fragile.keyFor();
    await record(fragile, key, plainTraces(3));
    await page.goto(await signInLink(fragile, keyId));
    await page.getByRole('table', { name: /^Models/ }).waitFor();
    await bringDown();
    const notice = page.getByRole('status').filter({ hasText: 'The server cannot be reached' });
    await notice.waitFor();
    await page.getByRole('button', { name: /now offline/ }).waitFor();
    await page.getByRole('button', { name: 'Try now' }).waitFor();
    assert.match(await notice.innerText(), /These are the numbers of \d\d:\d\d:\d\d/);
    assert.match(await page.getByRole('main').innerText(), /gpt-4o/);
    await bringUp();
    await recordOne(fragile, key, { model: 'after-the-pause' });
    await page.getByText('after-the-pause').waitFor();
    await notice.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: /now live/ }).waitFor();
  }),
);

test(
  'while the server is away, other views say so and offer to try again, which works once it is back',
  inBrowser(async ({ page, origins }) => {
    origins.push(new URL(fragile.url).origin);
    const { key, keyId } = await fragile.keyFor();
    const trace = await recordOne(fragile, key, { input: 'still there' });
    await page.goto(await signInLink(fragile, keyId));
    await page.getByRole('table', { name: /^Models/ }).waitFor();
    await bringDown();
    for (const fragment of ['#/traces', `#/traces/${trace.id}`]) {
      await page.goto(`${fragile.url}/${fragment}`);
      await page.getByRole('alert').getByText('The server cannot be reached').waitFor();
      await isNotBlank(page);
    }
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('alert').getByText('The server cannot be reached').waitFor();
    await bringUp();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('still there').waitFor();
    await page
      .getByRole('button', { name: 'Try now' })
      .click({ timeout: 2_000 })
      .catch(() => {
        // It may have come back by itself before.
      });
    await page.getByRole('button', { name: /now live/ }).waitFor();
  }),
);

test(
  'signing in while the server is away says so, and works at the next try',
  inBrowser(async ({ page, home, key, service }) => {
    await recordOne(service, key);
    await page.goto(home);
    await page.getByLabel('API key').waitFor();
    await page.route('**/session', (route) => route.abort());
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('The server cannot be reached').waitFor();
    assert.equal(await page.getByLabel('API key').inputValue(), key, 'it need not be typed again');
    await page.unroute('**/session');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  }),
);

test(
  'a reload whose first answers fail says so, and recovers',
  inBrowser(async ({ page, key, service, open }) => {
    await recordOne(service, key);
    await open();
    await page.route('**/analytics/**', (route) => route.abort());
    await page.reload();
    await page.getByRole('alert').getByText('The server cannot be reached').waitFor();
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
    await alert.getByRole('button', { name: 'Try again' }).waitFor({ timeout: 5_000 });
    await isNotBlank(page);
    await page.unroute(pattern);
    await alert.getByRole('button', { name: 'Try again' }).click();
    await seen.waitFor();
  }
  await go('#/');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
}

test(
  'errors and strange replies show words and a way on, never a blank page',
  inBrowser(async (visit) => {
    const { id } = await recordOne(visit.service, visit.key, { input: 'the question' });
    await visit.open();
    const replies: [reply: Reply, words: string][] = [
      [problem(503, 'store_unavailable'), 'The server cannot read its store'],
      [problem(500, 'something_new'), 'Words of the server.'],
      [{ status: 502, body: '<h1>Bad gateway</h1>' }, ''],
      [{ status: 200, body: '<!doctype html>' }, 'Something else answered'],
      [{ status: 200, json: { total: 1 } }, ''],
    ];
    for (const [reply, words] of replies) await showsWords(visit, id, reply, words);
  }),
);

test(
  'a reply of null shows words and a way on, never a blank page',
  inBrowser(async (visit) => {
    const { id } = await recordOne(visit.service, visit.key, { input: 'the question' });
    await visit.open();
    await showsWords(visit, id, { status: 200, json: null }, '');
  }),
);

test(
  'where the charts cannot be loaded, the numbers are there all the same',
  inBrowser(async ({ page, key, service, open }) => {
    await recordOne(service, key, { model: 'without-charts' });
    await page.route('**/assets/chart*', (route) => route.abort());
    await open();
    await page.getByText('without-charts').waitFor();
    await page.getByText('The chart could not be loaded').first().waitFor();
    await page.getByRole('group', { name: 'Show the days as' }).getByText('Table').click();
    await page.getByRole('table', { name: /of each day/ }).waitFor();
  }),
);

test(
  'an address that leads nowhere says so, and leads on',
  inBrowser(async ({ page, key, service, open }) => {
    await recordOne(service, key);
    await open('#/nowhere/at/all');
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    await page.getByRole('main').getByRole('link').click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  }),
);

test(
  'too many wrong keys are told how long to wait',
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
    await page.getByText('Too many tries with a wrong key or code').waitFor();
    await eventually(async () =>
      assert.match(await page.getByRole('alert').innerText(), /Wait 1[67] s/),
    );
  }),
);
