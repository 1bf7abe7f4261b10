import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { openWire } from './support/wire.ts';

const { inBrowser } = openStage();

/** Every address that the browser could bring back with its buttons. */
async function historyOf(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  const { entries } = await session.send('Page.getNavigationHistory');
  return entries.map(({ url }) => url);
}

test(
  'a sign-in link loses its key from the address and the history before the server is even asked',
  inBrowser(async ({ page, home, key, service }) => {
    await recordOne(service, key);
    let letThrough = (): void => {};
    const held = new Promise<void>((resolve) => (letThrough = resolve));
    await page.route('**/analytics/overview', async (route) => {
      await held;
      await route.continue();
    });
    await page.goto(`${home}#key=${key}`);
    await page.getByText('Signing in…').waitFor();
    assert.equal(page.url(), `${home}#/`);
    letThrough();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const seen = await historyOf(page);
    assert.ok(seen.includes(`${home}#/`), seen.join());
    assert.deepEqual(
      seen.filter((url) => url.includes(key)),
      [],
    );
    await page.goBack();
    assert.equal(page.url(), 'about:blank');
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  }),
);

test(
  'a sign-in link that is opened in a page already open leaves no key in its history either',
  inBrowser(async ({ page, home, key, service, open }) => {
    await recordOne(service, key, { model: 'of-the-first-team' });
    await open('#/traces');
    const other = await service.keyFor();
    await recordOne(service, other.key, { model: 'of-the-second-team' });
    await page.evaluate((next) => (location.hash = `key=${next}`), other.key);
    await page.getByText('of-the-second-team').first().waitFor();
    assert.doesNotMatch(await page.content(), /of-the-first-team/);
    const urls = [...(await historyOf(page)), page.url()].join('\n');
    assert.ok(!urls.includes(other.key) && !urls.includes(key), urls);
    assert.equal(page.url(), `${home}#/`);
  }),
);

test(
  'the key is kept in the session storage of the tab and nowhere else',
  inBrowser(async ({ page, context, key, service, open }) => {
    await recordOne(service, key);
    await open();
    const kept = await page.evaluate(async () => ({
      session: Object.values(sessionStorage) as string[],
      local: Object.entries(localStorage),
      cookies: document.cookie,
      databases: await indexedDB.databases(),
      caches: await caches.keys(),
      workers: (await navigator.serviceWorker.getRegistrations()).length,
      window: window.name,
      state: JSON.stringify(history.state),
    }));
    assert.deepEqual(kept, {
      session: [key],
      local: [],
      cookies: '',
      databases: [],
      caches: [],
      workers: 0,
      window: '',
      state: 'null',
    });
    const { cookies, origins } = await context.storageState();
    assert.deepEqual({ cookies, origins }, { cookies: [], origins: [] });
    assert.ok(!(await page.content()).includes(key), 'nor in the document');
  }),
);

test(
  'on the line the key is in the Authorization header and in nothing else',
  inBrowser(async ({ t, page, key, service, origins }) => {
    const trace = await recordOne(service, key);
    const wire = await openWire(service.url);
    t.after(() => wire.close());
    origins.push(wire.url);
    await page.goto(`${wire.url}/#key=${key}`);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page
      .getByRole('img', { name: /^Calls/ })
      .locator('canvas')
      .waitFor();
    await page.goto(`${wire.url}/#/traces`);
    await page.getByRole('table').waitFor();
    await page.goto(`${wire.url}/#/traces/${trace.id}`);
    await page.getByRole('heading', { name: 'Input' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Input' }).waitFor();

    const requests = wire.sent();
    const header = new RegExp(`^authorization: Bearer ${key}\\r$`, 'gim');
    assert.ok((requests.match(header)?.length ?? 0) >= 6, 'it is sent as a header');
    assert.ok(!requests.replace(header, '').includes(key), 'and nowhere else');
    assert.doesNotMatch(requests, /^referer:/im);
    assert.doesNotMatch(requests, /^(?!GET )[A-Z]+ \/\S* HTTP/m, 'the page only reads');
    // The files of the page need no key.
    assert.doesNotMatch(
      requests,
      /^GET \/(assets\/\S*)? HTTP\/1\.1\r\n(?:[^\r]+\r\n)*authorization/im,
    );
  }),
);
