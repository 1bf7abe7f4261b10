import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Trace } from '../../client/src/api-types.ts';
import { hostilePayloads, hostileTexts } from './support/hostile-text.ts';
import { record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import type { Visit } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

function isUntouched(page: Page): Promise<void> {
  return page.evaluate(() => {
    if ('__pwned' in window) throw new Error('a text was run');
    const strangers = document.querySelectorAll(
      'iframe, object, embed, base, style, form[action], meta[http-equiv], marquee, template, math',
    );
    if (strangers.length > 0) throw new Error(`a text became ${strangers[0]?.outerHTML}`);
    const own = [...document.scripts].every(({ src }) => src.startsWith(`${location.origin}/`));
    if (!own) throw new Error('a text became a script');
    for (const element of document.querySelectorAll('*')) {
      for (const { name, value } of element.attributes) {
        const isBad = name.startsWith('on') || (name === 'href' && !/^(#|http|\.)/.test(value));
        if (isBad) throw new Error(`a text became an attribute: ${element.outerHTML}`);
      }
    }
  });
}

async function seeEveryView(visit: Visit, stored: readonly Trace[]): Promise<void> {
  const { page, open, go } = visit;
  await open();
  for (const title of ['Models', 'Features']) {
    const place = page.getByRole('region', { name: title });
    await place.getByRole('button', { name: /^Show all/ }).click();
    await eventually(async () =>
      assert.ok((await place.getByRole('row').count()) > hostileTexts.length),
    );
  }
  await isUntouched(page);
  for (let number = 1; (number - 1) * 50 < stored.length; number += 1) {
    await go(`#/traces?page=${number}`);
    const first = stored.at(-1 - (number - 1) * 50);
    await page.locator(`a[href$="${first?.id}"]`).waitFor();
    await isUntouched(page);
  }
}

test(
  'no text in any field runs, loads or becomes markup, in any view; it is shown as it is',
  inBrowser(async (visit) => {
    const { page, service, key } = visit;
    assert.ok(hostileTexts.length >= 50);
    const stored = await record(
      service,
      key,
      hostileTexts.map((text) => ({
        model: text,
        feature_name: text,
        user_identifier: text,
        input: text,
        output: text,
        error_message: text,
      })),
    );
    await seeEveryView(visit, stored);
    for (const trace of stored) {
      // The server has put U+FFFD for what is no character. JSON is shown indented.
      const text = trace.model.startsWith('{"') ? indented(trace.model) : trace.model;
      const shown = await page.evaluate(lookAtTrace, trace.id);
      assert.deepEqual(shown, { heading: trace.model, payloads: [text, text, text] });
      await isUntouched(page);
    }
  }),
);

/** Goes there, and waits until all is drawn. Runs in the page. */
async function lookAtTrace(id: string) {
  location.hash = `#/traces/${id}`;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    const main = document.querySelector('main');
    const texts = [...(main?.querySelectorAll('section [dir=auto]') ?? [])];
    const payloads = texts.map((place) => place.textContent);
    const isThere = main?.textContent?.includes(id) === true && payloads.length === 3;
    if (isThere && !payloads.includes(''))
      return { heading: main.querySelector('h1')?.textContent, payloads };
  }
}

function indented(json: string): string {
  return JSON.stringify(JSON.parse(json), null, 2);
}

test(
  'no text inside of JSON or of a conversation runs, loads or becomes markup',
  inBrowser(async ({ page, service, key, open }) => {
    const trace = await recordOne(service, key, hostilePayloads());
    await open(`#/traces/${trace.id}`);
    const messages = page.getByRole('region', { name: 'Input' }).getByRole('listitem');
    const more = page.getByRole('button', { name: 'Show more' });
    await eventually(async () => {
      if (await more.isVisible()) await more.click();
      assert.equal(await messages.count(), hostileTexts.length);
    });
    assert.deepEqual(await messages.getByRole('heading').allTextContents(), hostileTexts);
    await isUntouched(page);
    for (const view of ['JSON', 'Raw']) {
      await page.getByRole('group', { name: 'Show input as' }).getByText(view).click();
      await isUntouched(page);
    }
    await page.getByRole('group', { name: 'Show output as' }).getByText('Raw').click();
    await isUntouched(page);
  }),
);

test(
  'no text in the address runs, loads or becomes markup',
  inBrowser(async ({ page, home, service, key, open, go, watch }) => {
    await recordOne(service, key);
    await open();
    const since = watch.requests.length;
    // Every third: each of them is a request that fails.
    const texts = hostileTexts.filter((one, index) => index % 3 === 0 && one.isWellFormed());
    for (const text of texts) {
      await go(`#/traces/${encodeURIComponent(text)}`);
      await page.getByRole('alert').getByText('No such trace').waitFor();
      await isUntouched(page);
    }
    for (const text of ['<img src=x onerror=alert(1)>', 'javascript:alert(1)', '"><b>']) {
      await go(`#/${text}`);
      await page.getByText('There is no such page').waitFor();
      await go(`#/traces?page=${text}`);
      await page.getByRole('table').waitFor();
      await isUntouched(page);
    }
    for (const path of watch.apiCalls(home, since))
      assert.match(path, /^(analytics\/overview|traces\?page=1&.*|traces\/[^/?]+)$/);
  }),
);

test(
  'no text in a sign-in link or in the key field runs, loads or becomes markup',
  inBrowser(async ({ page, home }) => {
    for (const text of [
      '<img src=x onerror=alert(1)>',
      '"><script>alert(1)</script>',
      '%3Csvg%3E',
    ]) {
      await page.goto('about:blank');
      await page.goto(`${home}#code=${text}`);
      await page
        .getByRole('alert')
        .filter({ hasText: /sign-in|key/ })
        .waitFor();
      await isUntouched(page);
    }
  }),
);
