import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { startTestService } from '../../../server/test/support/service.ts';
import type { TestService } from '../../../server/test/support/service.ts';
import { makeDemoData } from '../support/demo.ts';
import type { DemoData } from '../support/demo.ts';
import { exactNumber } from '../support/numbers.ts';
import { openStage, signInLink } from '../support/stage.ts';
import type { Visit } from '../support/stage.ts';

const { inBrowser } = openStage();

const requestsMax = 7;
const answerBytesMax = 20_000;

let demo: DemoData;
let service: TestService;

before(async () => {
  demo = await makeDemoData();
  service = await startTestService({ folder: demo.folder });
});
after(async () => {
  await service?.stop();
  demo?.remove();
});

/** Notes, in the page, when the figures and the tables came into the document. */
async function noteArrivals(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const arrivals: Record<string, number> = {};
    Object.assign(globalThis, { arrivals });
    new MutationObserver(() => {
      const figure = document.querySelector('[aria-label="Totals"] dd')?.textContent ?? '';
      if (/\$\d/.test(figure)) arrivals['figuresMs'] ??= performance.now();
      if (document.querySelectorAll('main tbody tr').length > 1)
        arrivals['tablesMs'] ??= performance.now();
      if (document.querySelectorAll('main canvas').length === 5)
        arrivals['chartsMs'] ??= performance.now();
    }).observe(document, { childList: true, subtree: true, characterData: true });
  });
}

interface Arrivals {
  paintMs: number;
  figuresMs: number;
  tablesMs: number;
  chartsMs: number;
}

async function readArrivals(page: Page): Promise<Arrivals> {
  await page
    .getByRole('slider', { name: /^Latency/ })
    .locator('canvas')
    .waitFor();
  await page.getByRole('table', { name: /^Features/ }).waitFor();
  // They may come in any order.
  await page.waitForFunction(() => {
    const { figuresMs, tablesMs, chartsMs } = (globalThis as unknown as { arrivals: Arrivals })
      .arrivals;
    return [figuresMs, tablesMs, chartsMs].every((ms: number | undefined) => ms !== undefined);
  });
  return page.evaluate(() => ({
    ...(globalThis as unknown as { arrivals: Arrivals }).arrivals,
    paintMs: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
  }));
}

function say({ t }: Visit, name: string, arrivals: Arrivals): void {
  const ms = (value: number): string => `${value.toFixed(0)} ms`;
  t.diagnostic(
    `${name}, ${demo.count.toLocaleString('en-US')} traces: first paint ${ms(arrivals.paintMs)}, ` +
      `figures ${ms(arrivals.figuresMs)}, tables ${ms(arrivals.tablesMs)}, charts ${ms(arrivals.chartsMs)}`,
  );
}

/** The page's own address is that of the large store. */
async function openDemo({ page, origins }: Visit): Promise<string> {
  origins.push(new URL(service.url).origin);
  const { keyId } = await service.keyFor(demo.team, { scope: 'read' });
  await noteArrivals(page);
  await page.goto(await signInLink(service, keyId));
  return `${service.url}/`;
}

/** At a load only sums are read, each of them once, and the totals once more when the pulse begins. */
async function checkRequests({ t, watch }: Visit, home: string, since: number): Promise<void> {
  const paths = watch.apiCalls(home, since);
  t.diagnostic(`${paths.length} requests: ${paths.join(', ')}`);
  assert.ok(paths.length <= requestsMax, paths.join());
  const rest = paths.filter((path) => path !== 'analytics/overview');
  const questions = rest.map((path) => {
    const query = new URLSearchParams(path.replace('analytics/query?', ''));
    return ['group_by', 'interval', 'last'].map((name) => query.get(name) ?? '-').join(' ');
  });
  assert.deepEqual(questions.toSorted(), [
    // The period before.
    '- - -',
    '- day 7d',
    'feature_name - 7d',
    'model - 7d',
    'model day 7d',
  ]);
  for (const request of watch.requests.slice(since)) {
    if (!request.url().startsWith(`${home}analytics/`)) continue;
    // The browser keeps no body that a page has read as a stream, but it knows its size.
    const { responseBodySize } = await request.sizes();
    assert.ok(responseBodySize > 0 && responseBodySize < answerBytesMax, request.url());
  }
}

test(
  'the overview of a large team loads with few and small replies',
  inBrowser(async (visit) => {
    const { page } = visit;
    const home = await openDemo(visit);
    say(visit, 'sign-in by link', await readArrivals(page));
    const allTime = page.getByRole('group', { name: 'All time' }).locator('.quantity');
    assert.equal(await exactNumber(allTime.nth(1)), demo.count);
    await checkRequests(visit, home, 0);
  }),
);

test(
  'a reload requests each total once',
  inBrowser(async (visit) => {
    const { page, watch } = visit;
    const home = await openDemo(visit);
    await readArrivals(page);
    const since = watch.requests.length;
    await page.reload();
    say(visit, 'reload', await readArrivals(page));
    await checkRequests(visit, home, since);
  }),
);

test(
  'the last page of the list loads with a single request, like the first',
  inBrowser(async (visit) => {
    const { t, page, watch } = visit;
    const home = await openDemo(visit);
    await page.getByRole('table', { name: /^Models/ }).waitFor();
    const since = watch.requests.length;
    await page.getByRole('link', { name: 'Traces', exact: true }).click();
    await page.getByRole('row').nth(50).waitFor();
    const startMs = performance.now();
    await page.getByRole('link', { name: 'Last page' }).click();
    const last = Math.ceil(demo.count / 50);
    await page.getByText(`of ${demo.count.toLocaleString('en-US')}`).waitFor();
    await page.waitForURL(`${home}#/traces?page=${last}`);
    await page.getByText(`–${demo.count.toLocaleString('en-US')} of`).waitFor();
    t.diagnostic(`the last page after ${(performance.now() - startMs).toFixed(0)} ms`);
    const lists = watch.apiCalls(home, since).filter((path) => path.startsWith('traces'));
    assert.equal(lists.length, 2, lists.join());
  }),
);
