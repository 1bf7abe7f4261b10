import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { Overview, QueryReply, QueryTotals } from '../../client/src/reading.ts';
import { manualClock } from '../../server/test/support/service.ts';
import { card, chartValue, figure } from './support/figures.ts';
import { exactNumber, exactText } from './support/numbers.ts';
import { recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import type { Visit } from './support/stage.ts';
import { eventually } from './support/wait.ts';
import { recordWeek } from './support/week.ts';

const clock = manualClock(Date.now() * 1000);
const { inBrowser } = openStage({ clock });

async function ask<T>({ service, key }: Visit, path: string): Promise<T> {
  const { status, json } = await service.call(key, 'GET', path);
  assert.equal(status, 200, JSON.stringify(json));
  return json as T;
}

/** The days of the last week, as the API tells them. */
async function askDays(visit: Visit): Promise<QueryReply> {
  return ask<QueryReply>(visit, '/analytics/query?last=7d&interval=day&fill=zero');
}

function chart(page: Page, name: string): Locator {
  return page.getByRole('slider', { name: `${name}, chart` });
}

/** `Nov 14`, as the page names a day. */
function dayName(start: string | undefined): string {
  const format = new Intl.DateTimeFormat('en-US', {
    month: 'short',
    day: 'numeric',
    timeZone: 'UTC',
  });
  return format.format(Date.parse(`${start?.slice(0, 10)}T00:00:00Z`));
}

test(
  'the figures of the last seven days match the API, exact on hover, and so do those of all time',
  inBrowser(async (visit) => {
    await recordWeek(visit.service, visit.key, clock);
    clock.set((Date.now() - 40 * 86_400_000) * 1000);
    await recordOne(visit.service, visit.key, { cost_usd: 7, model: 'older' });
    clock.set(Date.now() * 1000);
    await visit.open();
    const overview = await ask<Overview>(visit, '/analytics/overview');
    const { totals } = await ask<QueryReply>(visit, '/analytics/query?last=7d');
    assert.equal(overview.total_calls, totals.call_count + 1);
    const figures: [name: string, value: number | null][] = [
      ['Cost', totals.total_cost_usd],
      ['Calls', totals.call_count],
      ['Errors', totals.error_count],
      ['Success rate', totals.success_rate],
      ['Average latency', totals.avg_latency_ms],
      ['p95 latency', totals.p95_latency_ms],
    ];
    for (const [name, value] of figures) {
      const whole = figure(visit.page, name).locator('dd').first().locator('.quantity');
      await eventually(async () => assert.equal(await exactNumber(whole), value, name));
    }
    const allTime = visit.page.getByRole('group', { name: 'All time' }).locator('.quantity');
    const numbers = await Promise.all((await allTime.all()).map(exactNumber));
    assert.deepEqual(numbers, [
      overview.total_cost_usd,
      overview.total_calls,
      overview.error_count,
    ]);
  }),
);

test(
  'large numbers are shortened, and exact on hover',
  inBrowser(async ({ page, service, key, open }) => {
    const large = { latency_ms: 2_147_483_647, cost_usd: 123_456.789_012 };
    await recordOne(service, key, large);
    await open();
    const cost = figure(page, 'Cost').locator('dd').first();
    await eventually(async () => assert.equal(await exactText(cost), '$123,456.789012'));
    assert.match(await cost.innerText(), /^\$123 K/);
    const latency = figure(page, 'Average latency').locator('dd').first();
    assert.equal(await exactText(latency), '2,147,483,647 ms');
    assert.match(await latency.innerText(), /^596 h 31 min/);
  }),
);

test(
  'hovering a day shows its values in every chart, with the values of each layer in the legend',
  inBrowser(async (visit) => {
    const { page } = visit;
    await recordWeek(visit.service, visit.key, clock);
    await visit.open();
    const days = await askDays(visit);
    await chart(page, 'Tokens').locator('canvas').waitFor();
    const value = (name: string): Locator => card(page, name).locator('.chart-value');
    assert.match(await value('Calls').innerText(), /Last 7 days/);
    assert.equal(await shownValue(page, 'Calls'), days.totals.call_count);

    // The area without the axes.
    const area = await chart(page, 'Cost').locator('.u-over').boundingBox();
    assert.ok(area !== null);
    for (const [index, day] of days.rows.entries()) {
      const x = area.x + (area.width * (index + 0.5)) / days.rows.length;
      // Above every bar, so that no layer is looked at.
      await page.mouse.move(x, area.y + 2);
      await eventually(async () =>
        assert.ok((await value('Calls').innerText()).startsWith(dayName(day.start))),
      );
      assert.deepEqual(await lookedAt(page), {
        calls: day.call_count,
        callsOfLayers: day.call_count,
        errors: day.error_count,
        cost: day.total_cost_usd,
        latency: day.p95_latency_ms,
        latencies: [day.p50_latency_ms, day.p95_latency_ms, day.p99_latency_ms],
        tokens: day.prompt_tokens + day.completion_tokens,
      });
    }
    await page.mouse.move(0, 0);
    await eventually(async () => assert.match(await value('Calls').innerText(), /Last 7 days/));
  }),
);

function shownValue(page: Page, name: string): Promise<number | null> {
  return exactNumber(chartValue(page, name));
}

async function legendOf(page: Page, name: string): Promise<(number | null)[]> {
  const values = await card(page, name).locator('.legend-value').all();
  return Promise.all(values.map(exactNumber));
}

async function lookedAt(page: Page) {
  const parts = await legendOf(page, 'Calls');
  return {
    calls: await shownValue(page, 'Calls'),
    callsOfLayers: parts.reduce<number>((sum, part) => sum + (part ?? 0), 0),
    errors: await shownValue(page, 'Errors'),
    cost: await shownValue(page, 'Cost'),
    latency: await shownValue(page, 'Latency'),
    latencies: await legendOf(page, 'Latency'),
    tokens: await shownValue(page, 'Tokens'),
  };
}

test(
  'the height of a bar matches its value, and a day without calls has no bar',
  inBrowser(async (visit) => {
    const { page } = visit;
    await recordWeek(visit.service, visit.key, clock);
    await visit.open();
    const { rows: days } = await askDays(visit);
    for (const [name, of] of [
      ['Calls', (day: QueryTotals) => day.call_count],
      ['Errors', (day: QueryTotals) => day.error_count],
      ['Cost', (day: QueryTotals) => day.total_cost_usd],
      ['Tokens', (day: QueryTotals) => day.prompt_tokens + day.completion_tokens],
    ] as const) {
      await chart(page, name).locator('canvas').waitFor();
      await eventually(async () => {
        const heights = await barHeights(chart(page, name), days.length);
        const values = days.map(of);
        const scale = Math.max(...heights) / Math.max(...values);
        for (const [day, height] of heights.entries()) {
          const wanted = (values[day] ?? 0) * scale;
          assert.ok(Math.abs(height - wanted) <= 4, `${name}: ${height} for ${wanted}`);
        }
        assert.ok(Math.max(...heights) > 50, 'they are drawn at all');
      });
    }
  }),
);

/** How many pixels of each day's middle column are covered by a bar: opaque, and not a thin line of the grid. */
function barHeights(place: Locator, days: number): Promise<number[]> {
  return place.evaluate((holder, count) => {
    const canvas = holder.querySelector('canvas');
    const over = holder.querySelector('.u-over');
    if (canvas === null || over === null) throw new Error('there is no chart');
    // A copy, since reading pixels of the original would change how the browser keeps it.
    const copy = document.createElement('canvas');
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const picture = copy.getContext('2d', { willReadFrequently: true });
    picture?.drawImage(canvas, 0, 0);
    const scale = canvas.width / canvas.clientWidth;
    const from = canvas.getBoundingClientRect();
    const area = over.getBoundingClientRect();
    const [top, height] = [
      Math.round((area.top - from.top) * scale),
      Math.round(area.height * scale),
    ];
    return Array.from({ length: count }, (_, day) => {
      const x = Math.round((area.left - from.left + (area.width * (day + 0.5)) / count) * scale);
      const pixels = picture?.getImageData(x, top, 1, height).data ?? [];
      let covered = 0;
      let run = 0;
      for (let y = 0; y <= height; y += 1) {
        if ((pixels[y * 4 + 3] ?? 0) > 128) run += 1;
        else {
          if (run > 3) covered += run;
          run = 0;
        }
      }
      return covered;
    });
  }, days);
}

test(
  'tables show the numbers of every chart, today first',
  inBrowser(async (visit) => {
    const { page } = visit;
    await recordWeek(visit.service, visit.key, clock);
    await visit.open();
    const { rows: days } = await askDays(visit);
    await page.getByRole('group', { name: 'Show the series as' }).getByText('Table').click();
    const table = page.getByRole('table', { name: /^Calls, errors/ });
    const rows = table.getByRole('row');
    await eventually(async () => assert.equal(await rows.count(), 1 + days.length));
    assert.deepEqual(await rows.first().getByRole('columnheader').allTextContents(), [
      'Time',
      'Calls',
      'Errors',
      'Cost',
      'Average latency',
      'p50 latency',
      'p95 latency',
      'p99 latency',
      'Input tokens',
      'Cached input tokens',
      'Output tokens',
    ]);
    for (const [index, day] of days.toReversed().entries()) {
      const row = rows.nth(index + 1);
      assert.equal(await row.getByRole('rowheader').innerText(), dayName(day.start));
      const cells = await row.getByRole('cell').all();
      assert.deepEqual(await Promise.all(cells.map(exactNumber)), [
        day.call_count,
        day.error_count,
        day.total_cost_usd,
        day.avg_latency_ms,
        day.p50_latency_ms,
        day.p95_latency_ms,
        day.p99_latency_ms,
        day.prompt_tokens - day.cache_read_tokens,
        day.cache_read_tokens,
        day.completion_tokens,
      ]);
    }
    for (const [measure, of] of [
      ['Cost', (day: QueryTotals) => day.total_cost_usd],
      ['Calls', (day: QueryTotals) => day.call_count],
      ['Errors', (day: QueryTotals) => day.error_count],
    ] as const) {
      await page.getByRole('group', { name: 'Show for each' }).getByText(measure).click();
      const groups = page.getByRole('table', { name: `${measure} by model over time` });
      // The table may just be filled again.
      await eventually(async () => {
        const sums = await sumsOfRows(groups);
        for (const [index, day] of days.toReversed().entries())
          assert.ok(Math.abs((sums[index] ?? NaN) - of(day)) < 1e-9, `${measure} ${day.start}`);
      });
    }
  }),
);

/** What the cells of each row add up to, exactly as on hover. */
async function sumsOfRows(table: Locator): Promise<number[]> {
  const sums: number[] = [];
  for (const row of (await table.getByRole('row').all()).slice(1)) {
    const cells = await Promise.all((await row.getByRole('cell').all()).map(exactNumber));
    sums.push(cells.reduce<number>((sum, value) => sum + (value ?? 0), 0));
  }
  return sums;
}
