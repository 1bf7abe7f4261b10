import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Trace, TraceInput } from '../../client/src/api-types.ts';
import { hostilePayloads, hostileTexts } from './support/hostile-text.ts';
import { record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import type { Visit } from './support/stage.ts';
import { isUntouched } from './support/untouched.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

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
  'no text in any field is executed, loaded or parsed as markup in any view; it is shown as is',
  inBrowser(async (visit) => {
    const { page, service, key } = visit;
    assert.ok(hostileTexts.length >= 50);
    const stored = await record(service, key, hostileTexts.map(withHostileFields));
    await seeEveryView(visit, stored);
    // Every third trace shows every text once as a name and once as a payload.
    for (const trace of stored.filter((_trace, index) => index % 3 === 0)) {
      const shown = await page.evaluate(lookAtTrace, trace.id);
      const payloads = [trace.error_message, trace.input, trace.output].map(asShown);
      assert.deepEqual(shown, { heading: trace.model, payloads });
      await isUntouched(page);
    }
  }),
);

/** A trace with this text and the next two, each as a name and as a payload. */
function withHostileFields(text: string, index: number): TraceInput {
  const after = (steps: number): string =>
    hostileTexts[(index + steps) % hostileTexts.length] ?? '';
  return {
    model: text,
    feature_name: after(1),
    user_identifier: after(2),
    input: text,
    output: after(1),
    error_message: after(2),
  };
}

/** JSON is shown indented. */
function asShown(text: string | null): string | null {
  return text?.startsWith('{"') ? indented(text) : text;
}

/** Opens the trace and waits until all of it is drawn. Runs in the page. */
async function lookAtTrace(id: string) {
  location.hash = `#/traces/${id}`;
  const endMs = performance.now() + 120_000;
  while (performance.now() < endMs) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    const main = document.querySelector('main');
    const texts = [...(main?.querySelectorAll('section [dir=auto]') ?? [])];
    const payloads = texts.map((place) => place.textContent);
    const isThere = main?.textContent?.includes(id) === true && payloads.length === 3;
    if (isThere && !payloads.includes(''))
      return { heading: main.querySelector('h1')?.textContent, payloads };
  }
  throw new Error(`the trace ${id} was not drawn in time`);
}

function indented(json: string): string {
  return JSON.stringify(JSON.parse(json), null, 2);
}

test(
  'no text inside JSON or a conversation is executed, loaded or parsed as markup',
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
  'no text in the address is executed, loaded or parsed as markup',
  inBrowser(async ({ page, home, service, key, open, go, watch }) => {
    await recordOne(service, key);
    // Not on the overview: what it asks for must not count.
    await open('#/traces');
    await page.getByRole('table').waitFor();
    const since = watch.requests.length;
    // Every third: each of them is a request that fails.
    const texts = hostileTexts.filter((one, index) => index % 3 === 0 && one.isWellFormed());
    for (const text of texts) {
      await go(`#/traces/${encodeURIComponent(text)}`);
      await page.getByRole('alert').getByText('Trace not found').waitFor();
      await isUntouched(page);
    }
    for (const text of ['<img src=x onerror=alert(1)>', 'javascript:alert(1)', '"><b>']) {
      await go(`#/${text}`);
      await page.getByText('Page not found').waitFor();
      await go(`#/traces?page=${text}`);
      await page.getByRole('table').waitFor();
      await isUntouched(page);
    }
    for (const path of watch.apiCalls(home, since))
      assert.match(path, /^(analytics\/overview|traces\?page=1&.*|traces\/[^/?]+)$/);
  }),
);

test(
  'no text in a sign-in link is executed, loaded or parsed as markup',
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
