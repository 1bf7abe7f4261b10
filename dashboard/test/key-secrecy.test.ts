import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { recordOne } from './support/seed.ts';
import { openStage, signInLink } from './support/stage.ts';
import { openWire } from './support/wire.ts';

const { inBrowser } = openStage();

/** Every address that the browser could bring back with its buttons. */
async function historyOf(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  const { entries } = await session.send('Page.getNavigationHistory');
  return entries.map(({ url }) => url);
}

function codeOf(link: string): string {
  return link.replace(/.*#code=/, '');
}

test(
  'the code of a sign-in link leaves the address bar and the history before any request, and works once',
  inBrowser(async ({ page, context, home, key, service, link }) => {
    await recordOne(service, key);
    let letThrough = (): void => {};
    const held = new Promise<void>((resolve) => (letThrough = resolve));
    await page.route('**/session', async (route) => {
      await held;
      await route.continue();
    });
    const opened = await link();
    await page.goto(opened);
    await page.getByText('Loading…').waitFor();
    assert.equal(page.url(), `${home}#/`);
    letThrough();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const seen = await historyOf(page);
    assert.ok(seen.includes(`${home}#/`), seen.join());
    assert.deepEqual(
      seen.filter((url) => url.includes(codeOf(opened)) || url.includes(key)),
      [],
    );
    await page.goBack();
    assert.equal(page.url(), 'about:blank');
    await page.unrouteAll({ behavior: 'ignoreErrors' });

    // What the browser wrote to its disk is worth nothing.
    await context.clearCookies();
    await page.goto(opened);
    await page.getByRole('alert').getByText('no longer valid').waitFor();
    assert.equal(page.url(), `${home}#/`);
    assert.deepEqual(await context.cookies(), []);
  }),
);

test(
  'a link that contains a key does not sign in: the key leaves the address bar and the history, and the page says why',
  inBrowser(async ({ page, context, home, key, service, open, watch }) => {
    await recordOne(service, key, { model: 'of-the-team' });
    await page.goto(`${home}#key=${key}`);
    await page
      .getByRole('alert')
      .getByText('Sign-in links that contain an API key no longer work')
      .waitFor();
    assert.equal(page.url(), `${home}#/`);
    assert.deepEqual(await context.cookies(), []);
    assert.deepEqual(watch.apiCalls(home), []);
    assert.equal(await page.getByLabel('API key').inputValue(), '');

    await open();
    const other = await service.keyFor();
    await page.evaluate((next) => (location.hash = `key=${next}`), other.key);
    await page
      .getByRole('alert')
      .getByText('Sign-in links that contain an API key no longer work')
      .waitFor();
    await page.getByRole('button', { name: 'Stay signed in' }).click();
    await page.getByText('of-the-team').first().waitFor();
    const urls = [...(await historyOf(page)), page.url()].join('\n');
    assert.ok(!urls.includes(other.key) && !urls.includes(key), urls);
  }),
);

test(
  'the page stores no key and no code, and scripts cannot read the session',
  inBrowser(async ({ page, context, key, service, open, home }) => {
    await recordOne(service, key);
    const beforeS = Date.now() / 1000;
    await page.goto(home);
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await open('#/traces');
    const kept = await page.evaluate(async () => ({
      session: Object.entries(sessionStorage),
      local: Object.entries(localStorage),
      cookies: document.cookie,
      databases: await indexedDB.databases(),
      caches: await caches.keys(),
      workers: (await navigator.serviceWorker.getRegistrations()).length,
      window: window.name,
      state: JSON.stringify(history.state),
    }));
    assert.deepEqual(kept, {
      session: [],
      local: [],
      cookies: '',
      databases: [],
      caches: [],
      workers: 0,
      window: '',
      state: 'null',
    });
    const [cookie, ...more] = await context.cookies();
    assert.equal(more.length, 0);
    assert.deepEqual([cookie?.httpOnly, cookie?.sameSite], [true, 'Strict']);
    // It was set at some time since then.
    const signedInS = (cookie?.expires ?? 0) - 12 * 3600;
    assert.ok(signedInS >= beforeS - 1 && signedInS <= Date.now() / 1000 + 1, `${signedInS}`);
    assert.ok(!cookie?.value.includes(key));
    assert.ok(!(await page.content()).includes(key), 'nor in the document');
  }),
);

test(
  'the browser sends no key, the code once, and the session only to the API',
  inBrowser(async ({ t, page, key, keyId, service, origins }) => {
    const trace = await recordOne(service, key);
    const wire = await openWire(service.url);
    t.after(() => wire.close());
    origins.push(wire.url);
    const link = await signInLink(service, keyId);
    await page.goto(link.replace(service.url, wire.url));
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page
      .getByRole('slider', { name: /^Calls/ })
      .locator('canvas')
      .waitFor();
    await page.goto(`${wire.url}/#/traces`);
    await page.getByRole('table').waitFor();
    await page.goto(`${wire.url}/#/traces/${trace.id}`);
    await page.getByRole('heading', { name: 'Input' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Input' }).waitFor();

    const requests = wire.sent();
    assert.ok(!requests.includes(key));
    assert.doesNotMatch(requests, /^authorization:/im);
    assert.equal(requests.split(codeOf(link)).length - 1, 1, 'the code is sent once');
    assert.doesNotMatch(requests, /^referer:/im);
    const writes = requests.match(/^(?!GET )[A-Z]+ \/\S* HTTP/gm);
    assert.deepEqual(writes, ['POST /session HTTP'], 'otherwise the page only reads');
    assert.ok((requests.match(/^x-tracetally-dashboard: /gim)?.length ?? 0) >= 8);
  }),
);
