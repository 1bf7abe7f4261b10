import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { figure } from './support/figures.ts';
import { exactNumber } from './support/numbers.ts';
import { plainTraces, record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { eventually, settled } from './support/wait.ts';

const { inBrowser } = openStage();

/** The page asks every two seconds. The rest is for a busy machine: the deadline only prevents a hang. */
const aFewSecondsMs = 120_000;

function total(page: Page, name: string): Locator {
  return figure(page, name).locator('dd').first();
}

function firstRow(page: Page): Locator {
  return page.getByRole('table').getByRole('row').nth(1);
}

/** What is under this point of the window, and where. */
function underPoint(page: Page, x: number, y: number) {
  return page.evaluate(
    ([left, top]) => {
      const row = document.elementFromPoint(left, top)?.closest('tr');
      return {
        address: row?.querySelector('a')?.getAttribute('href'),
        top: row?.getBoundingClientRect().top,
        scrolledTo: scrollY,
      };
    },
    [x, y] as const,
  );
}

test(
  'a new trace changes the open overview within seconds',
  inBrowser(async ({ page, service, key, open }) => {
    await recordOne(service, key, { cost_usd: 1 });
    await open();
    await eventually(async () => assert.equal(await exactNumber(total(page, 'Cost')), 1));
    await recordOne(service, key, { cost_usd: 2.5, model: 'newcomer', error_message: 'no' });
    await eventually(async () => {
      assert.equal(await exactNumber(total(page, 'Cost')), 3.5);
      assert.equal(await exactNumber(total(page, 'Calls')), 2);
      assert.equal(await exactNumber(total(page, 'Errors')), 1);
    }, aFewSecondsMs);
    const row = page.getByRole('table', { name: /^Models/ }).getByRole('row', { name: 'newcomer' });
    await row.waitFor({ timeout: aFewSecondsMs });
  }),
);

test(
  'a new trace appears at the top of the open list within seconds',
  inBrowser(async ({ page, service, key, open }) => {
    await record(service, key, plainTraces(2));
    await open('#/traces');
    await firstRow(page).getByText('user-2').waitFor();
    await recordOne(service, key, { user_identifier: 'newcomer' });
    await firstRow(page).getByText('newcomer').waitFor({ timeout: aFewSecondsMs });
    await page.getByText('3 traces, newest first').waitFor();
  }),
);

test(
  'a list that was scrolled does not move, and a button offers the new traces',
  inBrowser(async ({ page, service, key, open }) => {
    await record(service, key, plainTraces(60));
    await open('#/traces');
    await firstRow(page).getByText('user-60').waitFor();
    await page.mouse.move(400, 400);
    await page.mouse.wheel(0, 600);
    await eventually(async () => assert.ok((await underPoint(page, 400, 400)).scrolledTo > 500));
    const before = await underPoint(page, 400, 400);
    assert.ok(before.address !== undefined);
    await record(service, key, plainTraces(3));
    const offer = page.getByRole('button', { name: '3 new traces' });
    await offer.waitFor({ timeout: aFewSecondsMs });
    assert.deepEqual(await underPoint(page, 400, 400), before);
    await recordOne(service, key, { user_identifier: 'newcomer' });
    await page.getByRole('button', { name: '4 new traces' }).waitFor({ timeout: aFewSecondsMs });
    assert.deepEqual(await underPoint(page, 400, 400), before);
    await page.getByRole('button', { name: '4 new traces' }).click();
    await firstRow(page).getByText('newcomer').waitFor();
    await eventually(async () => assert.equal(await page.evaluate(() => scrollY), 0));
    assert.equal(await page.getByRole('button', { name: /new trace/ }).count(), 0);
  }),
);

test(
  'a list with the pointer or the focus in it does not move',
  inBrowser(async ({ page, home, service, key, open, watch }) => {
    await record(service, key, plainTraces(9));
    await open('#/traces');
    const box = await firstRow(page).boundingBox();
    assert.ok(box !== null);
    const [x, y] = [box.x + 60, box.y + box.height / 2];
    await page.mouse.move(x, y);
    const before = await underPoint(page, x, y);
    await recordOne(service, key);
    await page.getByRole('button', { name: '1 new trace' }).waitFor({ timeout: aFewSecondsMs });
    assert.deepEqual(await underPoint(page, x, y), before);
    // The pointer goes away, and the keyboard comes.
    await firstRow(page).getByRole('link').first().focus();
    const since = watch.requests.length;
    await page.mouse.move(5, 5);
    await settled(page, home);
    const lists = watch.apiCalls(home, since).filter((path) => path.startsWith('traces'));
    assert.deepEqual(lists, [], 'the list is not loaded again');
    assert.deepEqual(await underPoint(page, x, y), before);
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await eventually(async () => assert.notDeepEqual(await underPoint(page, x, y), before));
  }),
);

test(
  'an older page of the list and an open trace do not change, and only request the totals',
  inBrowser(async ({ page, home, service, key, open, go, watch }) => {
    const [trace] = await record(service, key, plainTraces(60));
    await installClock(page);
    await open('#/traces?page=2');
    await firstRow(page).getByText('user-10', { exact: true }).waitFor();
    for (const fragment of ['#/traces?page=2', `#/traces/${trace?.id}`]) {
      await go(fragment);
      await page.getByText('user-1', { exact: true }).waitFor();
      const before = await page.getByRole('main').innerText();
      const since = watch.requests.length;
      await record(service, key, plainTraces(2));
      await pulses(page, () => watch.apiCalls(home, since).length, 3);
      await settled(page, home);
      assert.deepEqual([...new Set(watch.apiCalls(home, since))], ['analytics/overview']);
      assert.equal(withoutAges(await page.getByRole('main').innerText()), withoutAges(before));
    }
  }),
);

/**
 * A clock of our own, so that a minute takes no minute. It starts ten minutes after the hour began: a new hour sends requests of its
 * own.
 */
async function installClock(page: Page): Promise<void> {
  const hourMs = 3_600_000;
  const nowMs = Date.now();
  await page.clock.install({ time: nowMs - (nowMs % hourMs) + 600_000 });
}

/** The page's time runs, second by second, until it has asked so many times. */
async function pulses(page: Page, asked: () => number, times: number): Promise<void> {
  await eventually(async () => {
    await page.clock.runFor(1_000);
    assert.ok(asked() >= times, `asked ${asked()} times`);
  });
}

function withoutAges(text: string): string {
  return text.replaceAll(/just now|\d+ (s|min) ago/g, '…');
}

test(
  'while nothing is new, the page requests only the totals, every two seconds',
  inBrowser(async ({ page, home, service, key, open, watch }) => {
    await recordOne(service, key);
    await installClock(page);
    await open();
    await page.getByRole('table', { name: /^Models/ }).waitFor();
    const since = watch.requests.length;
    const startMs = await page.evaluate(() => Date.now());
    await pulses(page, () => watch.apiCalls(home, since).length, 4);
    await settled(page, home);
    const tookMs = (await page.evaluate(() => Date.now())) - startMs;
    assert.deepEqual([...new Set(watch.apiCalls(home, since))], ['analytics/overview']);
    assert.ok(tookMs > 5_000, `four requests in ${tookMs} ms`);
  }),
);

test(
  'pausing stops the requests, and resuming shows what arrived in between',
  inBrowser(async ({ page, home, service, key, open, watch }) => {
    await recordOne(service, key);
    await installClock(page);
    await open();
    await eventually(async () => assert.equal(await exactNumber(total(page, 'Calls')), 1));
    await page.getByRole('button', { name: /^Pause live updates/ }).click();
    await page.clock.runFor(3_000);
    await recordOne(service, key);
    const since = watch.requests.length;
    await page.clock.runFor(60_000);
    // Nor does another tab's turn end the pause.
    await setHidden(page, true);
    await setHidden(page, false);
    // Nor does a new hour, which moves the end of the period before.
    await page.clock.fastForward(3_600_000);
    await page.clock.runFor(60_000);
    await settled(page, home);
    assert.deepEqual(watch.apiCalls(home, since), []);
    assert.equal(await exactNumber(total(page, 'Calls')), 1);
    await page.getByRole('button', { name: /^Resume live updates/ }).click();
    await eventually(async () => assert.equal(await exactNumber(total(page, 'Calls')), 2));
    // And it goes on from there.
    await recordOne(service, key);
    await eventually(async () => {
      await page.clock.runFor(1_000);
      assert.equal(await exactNumber(total(page, 'Calls')), 3);
    });
  }),
);

test(
  'a hidden page sends no requests, and catches up as soon as it is visible again',
  inBrowser(async ({ page, home, service, key, open, watch }) => {
    await recordOne(service, key);
    await installClock(page);
    await open();
    await eventually(async () => assert.equal(await exactNumber(total(page, 'Calls')), 1));
    await setHidden(page, true);
    await page.clock.runFor(3_000);
    await recordOne(service, key);
    const since = watch.requests.length;
    await page.clock.runFor(60_000);
    await settled(page, home);
    assert.deepEqual(watch.apiCalls(home, since), []);
    await setHidden(page, false);
    await eventually(async () => assert.equal(await exactNumber(total(page, 'Calls')), 2));
    await recordOne(service, key);
    await eventually(async () => {
      await page.clock.runFor(1_000);
      assert.equal(await exactNumber(total(page, 'Calls')), 3);
    });
  }),
);

/** As when another tab is brought to the front. */
function setHidden(page: Page, isHidden: boolean): Promise<void> {
  return page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
    const state = hidden ? 'hidden' : 'visible';
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => state });
    document.dispatchEvent(new Event('visibilitychange'));
  }, isHidden);
}
