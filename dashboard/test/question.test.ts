import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { QueryReply } from '../../client/src/reading.ts';
import { card, chartValue, figure } from './support/figures.ts';
import { exactNumber } from './support/numbers.ts';
import { record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import type { Visit } from './support/stage.ts';
import { eventually } from './support/wait.ts';
import { recordDays } from './support/year.ts';

const { inBrowser } = openStage();

async function chooseRange(page: Page, name: string): Promise<void> {
  await page.getByRole('combobox', { name: 'Time range' }).selectOption({ label: name });
}

/** Reads the list to its end: how many traces it says there are, and how many there are. */
async function countListed(page: Page): Promise<{ said: number; listed: number }> {
  const words = page.getByText(/^[\d,]+ traces?, newest first$/);
  const said = Number((await words.innerText()).replace(/ .*/s, '').replaceAll(',', ''));
  const ids = new Set<string>();
  for (;;) {
    const end = page.getByRole('navigation', { name: 'Pages' });
    const older = end.getByRole('link', { name: 'Older' });
    await older.or(end.getByText(/No more traces|No trace matches/)).waitFor();
    const links = page.locator('tbody a[href^="#/traces/"]');
    for (const href of await links.evaluateAll((all) => all.map((one) => one.getAttribute('href'))))
      ids.add(href ?? '');
    if (!(await older.isVisible())) return { said, listed: ids.size };
    const before = page.url();
    await older.click();
    await page.waitForURL((url) => url.href !== before);
    await eventually(async () =>
      assert.ok(!ids.has((await links.first().getAttribute('href')) ?? '')),
    );
  }
}

async function ask({ service, key }: Visit, query: string): Promise<QueryReply> {
  const { status, json } = await service.call(key, 'GET', `/analytics/query?${query}`);
  assert.equal(status, 200, JSON.stringify(json));
  return json as QueryReply;
}

test(
  'from a range to a chart, to a bar, to its traces: the number on the chart is the number of traces',
  inBrowser(async (visit) => {
    const { page, home } = visit;
    await recordDays(visit.service, visit.key, { days: 40, perDay: 9 });
    await visit.open();
    await chooseRange(page, 'Last 30 days');
    await page.waitForURL(`${home}#/?last=30d`);
    const total = (await ask(visit, 'last=30d')).totals.call_count;
    await eventually(async () => assert.equal(await exactNumber(chartValue(page, 'Calls')), total));
    const area = card(page, 'Calls').locator('.u-over');
    // The bottom of a bar in the middle is its largest model; above all bars it is the whole day.
    for (const [height, hasModel] of [
      [0.97, true],
      [0.01, false],
    ] as const) {
      await visit.go('#/?last=30d');
      await area.waitFor();
      const box = await area.boundingBox();
      assert.ok(box !== null);
      const [x, y] = [box.x + box.width * 0.5, box.y + box.height * height];
      await page.mouse.move(x, y);
      await eventually(async () => {
        const label = await card(page, 'Calls').locator('.chart-value').innerText();
        assert.equal(/alpha|beta|gamma/.test(label), hasModel, label);
      });
      const shown = await exactNumber(chartValue(page, 'Calls'));
      assert.ok(shown !== null && shown > 0 && shown < total);
      await page.mouse.click(x, y);
      await page.getByRole('heading', { name: 'Traces', level: 1 }).waitFor();
      assert.deepEqual(await countListed(page), { said: shown, listed: shown });
      assert.equal(new URL(page.url()).hash.includes('model='), hasModel);
    }
    // The keyboard does the same.
    await visit.go('#/?last=30d');
    const slider = page.getByRole('slider', { name: 'Errors, chart' });
    await slider.focus();
    for (const key of ['End', 'ArrowLeft', 'ArrowLeft']) await page.keyboard.press(key);
    await eventually(async () => assert.equal(await slider.getAttribute('aria-valuenow'), '27'));
    const errors = await exactNumber(chartValue(page, 'Errors'));
    assert.ok(errors !== null && errors > 0);
    const words = (await slider.getAttribute('aria-valuetext')) ?? '';
    assert.match(words, new RegExp(`^[A-Z][a-z]{2} \\d+: ${errors}; `));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Traces', level: 1 }).waitFor();
    assert.deepEqual(await countListed(page), { said: errors, listed: errors });
  }),
);

test(
  'every figure and every count in a table leads to as many traces as it says',
  inBrowser(async (visit) => {
    const { page } = visit;
    await recordDays(visit.service, visit.key, { days: 10, perDay: 12 });
    const view = '#/?last=7d&environment=staging&split=provider';
    const cell = (table: Locator, column: number): Locator =>
      table.locator('tbody').getByRole('row').nth(1).getByRole('cell').nth(column);
    const table = (name: RegExp): Locator => page.getByRole('table', { name });
    const places: [name: string, view: string, place: Locator][] = [
      ['calls', view, figure(page, 'Calls')],
      ['errors', view, figure(page, 'Errors')],
      ['calls of a model', view, cell(table(/^Models/), 1)],
      [
        'calls without a provider',
        view,
        table(/^Providers/)
          .getByRole('row', { name: 'not set' })
          .getByRole('cell')
          .nth(1),
      ],
      [
        'calls with an error type',
        view.replace('provider', 'error_type'),
        table(/^Error types/)
          .getByRole('row', { name: 'rate_limit' })
          .getByRole('cell')
          .nth(1),
      ],
      ['calls of a day', `${view}&show=table`, cell(table(/^Calls, errors/), 0)],
      ['errors of a day', `${view}&show=table`, cell(table(/^Calls, errors/), 1)],
      ['calls of a user', '#/users?last=7d&environment=staging', cell(table(/^Users/), 1)],
    ];
    const follow = async (name: string, place: Locator): Promise<void> => {
      const link = place.getByRole('link');
      const shown = await exactNumber(link);
      assert.ok(shown !== null && shown > 0, name);
      await link.click();
      await page.getByRole('heading', { name: 'Traces', level: 1 }).waitFor();
      await eventually(async () => assert.match(page.url(), /environment=staging/));
      assert.deepEqual(await countListed(page), { said: shown, listed: shown }, name);
    };
    await visit.open(view);
    for (const [name, address, place] of places) {
      await visit.go(address);
      await follow(name, place);
    }
    // A layer of a bar, as a number.
    await visit.go(`${view}&show=table&stack=feature_name`);
    await page.getByRole('group', { name: 'Show for each' }).getByText('Calls').click();
    await page.waitForURL(/measure=calls/);
    await follow('calls of a feature on a day', cell(table(/^Calls by feature/), 0));
  }),
);

test(
  'figures are compared with the period before, and the color says whether that is good',
  inBrowser(async ({ page, service, key, open }) => {
    const at = (daysAgo: number): string =>
      new Date(Date.now() - 60_000 - daysAgo * 86_400_000).toISOString();
    // Percentiles are exact up to 89 ms.
    const call = { model: 'm', latency_ms: 40, cost_usd: 1 };
    await record(service, key, [
      { ...call, started_at: at(8), latency_ms: 80 },
      { ...call, started_at: at(8), error_message: 'no' },
      { ...call, started_at: at(1), cost_usd: 1.5 },
      { ...call, started_at: at(1), cost_usd: 1.5 },
      { ...call, started_at: at(1), cost_usd: 1.5 },
    ]);
    await open();
    const changes: [name: string, words: string, tone: string][] = [
      ['Cost', '▲ up $2.50 (125%), worse', 'bad'],
      ['Calls', '▲ up 1 (50%)', 'neutral'],
      ['Errors', '▼ down 1 (100%), better', 'good'],
      ['Success rate', '▲ up 50.00 points, better', 'good'],
      ['Average latency', '▼ down 20 ms (33%), better', 'good'],
      ['p95 latency', '▼ down 40 ms (50%), better', 'good'],
    ];
    for (const [name, words, tone] of changes) {
      const change = figure(page, name).locator('dd').last().locator('> span');
      await change.waitFor();
      assert.equal((await change.textContent())?.replaceAll(/\s+/g, ' '), words);
      assert.equal(await change.getAttribute('class'), `change ${tone}`);
    }
    const good = await colorOf(figure(page, 'Errors').locator('.change'));
    const bad = await colorOf(figure(page, 'Cost').locator('.change'));
    assert.notEqual(good, bad);
    const title = await figure(page, 'Cost').locator('.change').getAttribute('title');
    assert.match(title ?? '', /: \$2\.00$/);
  }),
);

function colorOf(place: Locator): Promise<string> {
  return place.evaluate((element) => getComputedStyle(element).color);
}

test(
  'every range of the picker shows what the API says about it, and the time zone of the team',
  inBrowser(async (visit) => {
    const { page, service, key, teamId } = visit;
    await service.beside.rebuild(teamId, 'Asia/Kathmandu', () => {});
    await recordDays(service, key, { days: 120, perDay: 2 });
    await visit.open();
    await page.getByText('Time zone: Asia/Kathmandu').waitFor();
    const daysNow = () => {
      const today = new Date(Date.now() + 5.75 * 3_600_000).toISOString().slice(0, 10);
      const first = `${today.slice(0, 8)}01`;
      const lastDay = new Date(Date.parse(first) - 86_400_000).toISOString().slice(0, 10);
      return { today, first, lastDay };
    };
    const ranges: [name: string, query: (days: ReturnType<typeof daysNow>) => string][] = [
      ['Last 24 hours', () => 'last=24h'],
      ['Last 7 days', () => 'last=7d'],
      ['Last 30 days', () => 'last=30d'],
      ['Last 90 days', () => 'last=90d'],
      ['This month', ({ first, today }) => `from=${first}&to=${today}`],
      ['Last month', ({ lastDay }) => `from=${lastDay.slice(0, 8)}01&to=${lastDay}`],
      ['All time', () => ''],
    ];
    for (const [name, query] of ranges) {
      await chooseRange(page, name);
      const places = [figure(page, 'Calls').locator('.quantity'), chartValue(page, 'Calls')];
      for (const place of places) {
        await eventually(async () => {
          // Asked at each attempt: a day or an hour may begin in between.
          const { totals } = await ask(visit, query(daysNow()));
          assert.equal(await exactNumber(place), totals.call_count, name);
        });
      }
    }
    const { first, lastDay } = daysNow();
    await chooseRange(page, 'Custom dates…');
    await page.getByLabel('First day').fill('2026-01-31');
    await page.getByLabel('Last day').fill('2026-01-01');
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByText('The first day is after the last day.').waitFor();
    await page.getByLabel('First day').fill(lastDay);
    await page.getByLabel('Last day').fill(first);
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.waitForURL(new RegExp(`#/\\?from=${lastDay}&to=${first}$`));
    const { totals } = await ask(visit, `from=${lastDay}&to=${first}`);
    await eventually(async () =>
      assert.equal(
        await exactNumber(figure(page, 'Calls').locator('.quantity')),
        totals.call_count,
      ),
    );
  }),
);

test(
  'names narrow the view, chips widen it again, and back, forward, reload and a copied link restore it',
  inBrowser(async (visit) => {
    const { page, home, context, open } = visit;
    await recordDays(visit.service, visit.key, { days: 5, perDay: 12 });
    await open();
    const models = page.getByRole('region', { name: 'Models' });
    await models.getByRole('link', { name: 'beta' }).click();
    await page.waitForURL(`${home}#/?model=beta`);
    const chips = page.getByRole('list', { name: 'Filters' });
    await chips.getByText('beta').waitFor();
    await page
      .getByRole('region', { name: 'Features' })
      .getByRole('link', { name: 'not set' })
      .click();
    await page.waitForURL(`${home}#/?model=beta&feature_name=`);
    const shows = async (on: Page, query: string): Promise<void> => {
      const { totals } = await ask(visit, `last=7d&${query}`);
      await eventually(async () =>
        assert.equal(
          await exactNumber(figure(on, 'Calls').locator('.quantity')),
          totals.call_count,
          query,
        ),
      );
    };
    await shows(page, 'model=beta&feature_name=');
    await page.goBack();
    await shows(page, 'model=beta');
    await page.goForward();
    await shows(page, 'model=beta&feature_name=');
    await page.reload();
    await shows(page, 'model=beta&feature_name=');
    const copied = page.url();
    const other = await context.newPage();
    await other.goto(copied);
    await shows(other, 'model=beta&feature_name=');
    await other.close();

    await page.getByRole('link', { name: 'Remove the filter Model: beta' }).click();
    await page.waitForURL(`${home}#/?feature_name=`);
    await shows(page, 'feature_name=');
    assert.equal(
      await page.evaluate(() => document.activeElement?.tagName),
      'H1',
      'the focus is not lost with the chip',
    );
    // A filter that no table shows.
    await page.getByRole('button', { name: 'Filter', exact: true }).click();
    await page.getByLabel('Field').selectOption({ label: 'User' });
    await page.getByLabel('Value').fill('user-3');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.waitForURL(`${home}#/?feature_name=&user_identifier=user-3`);
    await shows(page, 'feature_name=&user_identifier=user-3');
    // The question stays from view to view.
    await page.getByRole('link', { name: 'Traces', exact: true }).click();
    await page.waitForURL(`${home}#/traces?feature_name=&user_identifier=user-3`);
    await page.getByRole('link', { name: 'Remove all' }).click();
    await page.waitForURL(`${home}#/traces`);
  }),
);

test(
  'a copied link opens the same view in a fresh browser after signing in, and never has a key',
  inBrowser(async (visit) => {
    const { page, home, key, keyId, context } = visit;
    await recordDays(visit.service, key, { days: 5, perDay: 12 });
    await visit.open();
    await chooseRange(page, 'Last 30 days');
    await page.getByRole('group', { name: 'Stacked by' }).getByText('Environment').click();
    await page.getByRole('group', { name: 'Show the series as' }).getByText('Table').click();
    await page.getByRole('region', { name: 'Models' }).getByRole('link', { name: 'alpha' }).click();
    await page.getByRole('table', { name: 'Cost by environment over time' }).waitFor();
    const link = page.url();
    assert.equal(link, `${home}#/?last=30d&model=alpha&stack=environment&show=table`);
    assert.ok(!link.includes(key) && !link.includes(keyId));
    // All of it has been loaded.
    await page.getByText('no calls before').first().waitFor();
    await page.getByRole('table', { name: /^Features/ }).waitFor();
    const text = await page.getByRole('main').innerText();
    const browser = context.browser();
    assert.ok(browser !== null);
    const fresh = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    try {
      const tab = await fresh.newPage();
      await tab.goto(link);
      await tab.getByLabel('API key').fill(key);
      await tab.getByLabel('API key').press('Enter');
      await tab.getByRole('table', { name: 'Cost by environment over time' }).waitFor();
      assert.equal(tab.url(), link);
      await eventually(async () => assert.equal(await tab.getByRole('main').innerText(), text));
      // Other views, also in the middle of a list.
      const views = ['#/users?last=30d&model=alpha&search=user&order=calls', '#/traces?last=30d'];
      for (const view of views) {
        await visit.go(view);
        if (view.startsWith('#/traces')) {
          await page.getByRole('link', { name: 'Older' }).click();
          // Only the last page says so: until then the first page may still be shown.
          await page.getByText(/^No more traces/).waitFor();
        } else await page.getByText('user-1').first().waitFor();
        const [address, shown] = [page.url(), await page.locator('tbody').innerText()];
        assert.ok(!address.includes(key) && !address.includes(keyId));
        await tab.goto('about:blank');
        await tab.goto(address);
        await eventually(async () => {
          // How long ago something was changes while the test runs.
          const times = /\d+ (s|min|h) ago/g;
          const there = (await tab.locator('tbody').innerText()).replaceAll(times, '');
          assert.equal(there, shown.replaceAll(times, ''));
        });
        assert.equal(tab.url(), address);
      }
    } finally {
      await fresh.close();
    }
  }),
);

test(
  'a question that the server refuses shows its words, and a way out',
  inBrowser(async ({ page, service, key, open }) => {
    await recordOne(service, key);
    await open(`#/traces?model=${'m'.repeat(256)}`);
    await page
      .getByRole('alert')
      .getByText(/at most 255 characters/)
      .waitFor();
    await page.getByRole('link', { name: /^Remove the filter Model/ }).click();
    await page.getByRole('table', { name: /^Traces/ }).waitFor();
  }),
);
