import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { plainTraces, record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { eventually, settled } from './support/wait.ts';

const { inBrowser } = openStage();

function keyField(page: Page): Locator {
  return page.getByLabel('API key');
}

async function signIn(page: Page, key: string): Promise<void> {
  await keyField(page).fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

async function sees(page: Page, words: string | RegExp): Promise<void> {
  await page.getByText(words).first().waitFor();
}

test(
  'a typed key is masked and opens the overview, even with spaces and "Bearer" around it',
  inBrowser(async ({ page, home, key, service }) => {
    await recordOne(service, key);
    await page.goto(home);
    assert.equal(await keyField(page).getAttribute('type'), 'password');
    await eventually(async () => assert.ok(await hasFocus(keyField(page))));
    await page.keyboard.type(`  Bearer ${key} `);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    assert.equal(await page.title(), 'Overview · TraceTally');
  }),
);

function hasFocus(place: Locator): Promise<boolean> {
  return place.evaluate((element) => element === document.activeElement);
}

test(
  'a wrong, expired or ingest-only key shows the reason, and another key can be tried',
  inBrowser(async ({ page, home, team, key, service }) => {
    await recordOne(service, key);
    const wrong = `${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`;
    const expiresAtUs = (Date.now() - 60_000) * 1000;
    const expired = await service.keyFor(team, { expiresAtUs });
    const recorder = await service.keyFor(team, { scope: 'ingest' });
    await page.goto(home);
    for (const [tried, words] of [
      [wrong, 'Unknown API key'],
      [expired.key, 'This key has expired'],
      [recorder.key, 'needs a key with the scope "read" or "full"'],
    ] as const) {
      await signIn(page, tried);
      await page.getByRole('alert').getByText(words).waitFor();
      assert.equal(await keyField(page).getAttribute('aria-invalid'), 'true');
      assert.deepEqual(await page.context().cookies(), []);
    }
    await signIn(page, key);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  }),
);

test(
  'text that cannot be a key is refused without a request',
  inBrowser(async ({ page, home, watch }) => {
    await page.goto(home);
    await keyField(page).waitFor();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await sees(page, 'No key entered');
    await signIn(page, 'ключ от квартиры');
    await sees(page, 'This is not an API key');
    assert.deepEqual(watch.apiCalls(home), []);
    const posts = watch.requests.filter((request) => request.method() !== 'GET');
    assert.equal(posts.length, 0);
  }),
);

test(
  'a key with the scope "read" opens every view',
  inBrowser(async ({ page, home, team, key, service }) => {
    await recordOne(service, key, { model: 'read-by-another-key' });
    const reader = await service.keyFor(team, { scope: 'read' });
    await page.goto(home);
    await signIn(page, reader.key);
    await sees(page, 'read-by-another-key');
    await page.getByRole('link', { name: 'Traces', exact: true }).click();
    await page.getByRole('link', { name: /, read-by-another-key$/ }).click();
    await page.getByRole('heading', { name: 'Input' }).waitFor();
  }),
);

test(
  'revoking the key while the page is open ends the session within seconds, with the reason, also after a reload',
  inBrowser(async ({ page, team, key, keyId, service, open, watch, home }) => {
    await record(service, key, plainTraces(3));
    await page.clock.install();
    await open('#/traces');
    await page.getByRole('table').waitFor();
    const other = await service.keyFor(team);
    await service.beside.revokeKey(keyId, Date.now() * 1000);
    // The page's own clock, second by second, while the server may remember the key for half a second.
    await eventually(async () => {
      await page.clock.runFor(1_000);
      assert.ok(await page.getByRole('alert').getByText('This key was revoked').isVisible());
    });
    assert.equal(await page.getByRole('table').count(), 0, 'what was shown is gone');
    const asked = watch.requests.length;
    await page.clock.runFor(60_000);
    await settled(page, home);
    assert.deepEqual(watch.apiCalls(home, asked), [], 'it is not asked with the dead key again');
    await page.reload();
    await page.getByRole('alert').getByText('This key was revoked').waitFor();
    assert.equal(await page.getByRole('table').count(), 0);
    await signIn(page, other.key);
    await page.getByRole('heading', { name: 'Traces' }).waitFor();
  }),
);

test(
  'a reload, another tab and a Ctrl-click stay signed in',
  inBrowser(async ({ page, context, home, key, service, open }) => {
    await recordOne(service, key, { model: 'clicked', input: 'the question' });
    await open();
    await page.reload();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const tab = await context.newPage();
    await tab.goto(home);
    await tab.getByRole('heading', { name: 'Overview' }).waitFor();
    await tab.getByRole('link', { name: 'Traces', exact: true }).click();
    const opened = context.waitForEvent('page');
    await tab.getByRole('link', { name: /, clicked$/ }).click({ modifiers: ['Control'] });
    await (await opened).getByText('the question').waitFor();
  }),
);

test(
  'signing out ends the session and hides the data, and neither reload nor back shows it again',
  inBrowser(async ({ page, key, service, open, go, watch, home }) => {
    await recordOne(service, key, { model: 'secret-model' });
    await page.clock.install();
    await open();
    await go('#/traces');
    await sees(page, 'secret-model');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await keyField(page).waitFor();
    assert.equal(await keyField(page).inputValue(), '');
    assert.deepEqual(await page.context().cookies(), []);
    assert.doesNotMatch(await page.content(), /secret-model/);
    const asked = watch.requests.length;
    await page.clock.runFor(60_000);
    await settled(page, home);
    assert.deepEqual(watch.apiCalls(home, asked), [], 'nothing is asked for any more');
    await page.reload();
    await keyField(page).waitFor();
    await page.goBack();
    await keyField(page).waitFor();
    assert.doesNotMatch(await page.content(), /secret-model/);
  }),
);

test(
  'a typed sign-in code or a pasted sign-in link signs in',
  inBrowser(async ({ page, home, key, service, link, team }) => {
    await recordOne(service, key);
    for (const secret of [await link(), (await link()).replace(/.*#code=/, '')]) {
      await page.goto(home);
      await signIn(page, secret);
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      await page.getByRole('banner').getByText(team).waitFor();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await keyField(page).waitFor();
    }
  }),
);

test(
  'a sign-out that did not reach the server shows an error',
  inBrowser(async ({ page, key, service, open }) => {
    await recordOne(service, key);
    await open();
    await page.route('**/session', (route) => route.abort());
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('alert').getByText('did not confirm the sign-out').waitFor();
    await page.unroute('**/session');
    await page.reload();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await keyField(page).waitFor();
    assert.equal(await page.getByText('did not confirm').count(), 0);
  }),
);

test(
  'a reload while the server is unreachable offers to try again instead of the sign-in form',
  inBrowser(async ({ page, home, key, service, open }) => {
    await recordOne(service, key);
    await open();
    await page.route('**/session', (route) => route.abort());
    await page.reload();
    await page.getByRole('alert').getByText('Cannot reach the server').waitFor();
    assert.equal(await keyField(page).count(), 0);
    await page.unroute('**/session');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.equal(page.url(), `${home}#/`);
  }),
);
