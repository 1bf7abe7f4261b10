import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { DailyRecord, Overview } from '../../client/src/api-types.ts';
import { manualClock } from '../../server/test/support/service.ts';
import { exactNumber, exactText } from './support/numbers.ts';
import { recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import type { Visit } from './support/stage.ts';
import { eventually } from './support/wait.ts';
import { recordWeek } from './support/week.ts';

const clock = manualClock(Date.now() * 1000);
const { inBrowser } = openStage({ clock });

async function ask<T>({ service, key }: Visit, path: string): Promise<T> {
  return (await service.call(key, 'GET', path)).json as T;
}

/** The large number with this name. */
function figure(page: Page, name: string): Locator {
  return page
    .getByRole('region', { name: 'All time' })
    .locator('dl', { has: page.getByText(name, { exact: true }) });
}

/** What stands over a chart: its name, the day that is looked at, and the value. */
function chartHeading(page: Page, name: string): Locator {
  return page
    .locator('div', { has: page.getByRole('heading', { name, level: 3, exact: true }) })
    .last();
}

function chart(page: Page, name: string): Locator {
  return page.getByRole('img', { name: `${name} for the last 7 days` });
}

function round(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

type OfDay = (day: DailyRecord) => number;

function successOf({ call_count: calls, error_count: errors }: DailyRecord): number {
  return Math.round((10_000 * (calls - errors)) / calls) / 100;
}

test(
  'the figures match the API, exact on hover, with today and yesterday below each',
  inBrowser(async (visit) => {
    await recordWeek(visit.service, visit.key, clock);
    await visit.open();
    const overview = await ask<Overview>(visit, '/analytics/overview');
    const daily = await ask<DailyRecord[]>(visit, '/analytics/daily');
    const [yesterday, today] = daily.slice(-2);
    assert.ok(today !== undefined && yesterday !== undefined);
    const figures: [name: string, value: number, of: OfDay][] = [
      ['Cost', overview.total_cost_usd, (day) => day.total_cost_usd],
      ['Calls', overview.total_calls, (day) => day.call_count],
      ['Average latency', overview.avg_latency_ms, (day) => day.avg_latency_ms],
      ['Success rate', overview.success_rate, successOf],
      ['Errors', overview.error_count, (day) => day.error_count],
    ];
    for (const [name, value, of] of figures) {
      const [whole, days] = await figure(visit.page, name).locator('dd').all();
      assert.ok(whole !== undefined && days !== undefined);
      await eventually(async () => assert.equal(await exactNumber(whole), value, name));
      await days.locator('b').first().waitFor();
      assert.equal(await exactNumber(days.locator('b').nth(0)), of(today), `${name} today`);
      assert.equal(await exactNumber(days.locator('b').nth(1)), of(yesterday), `${name} yesterday`);
    }
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
  'the charts show seven days, and hovering a day shows its values in all three charts',
  inBrowser(async (visit) => {
    const { page } = visit;
    await recordWeek(visit.service, visit.key, clock);
    await visit.open();
    const daily = await ask<DailyRecord[]>(visit, '/analytics/daily');
    await chart(page, 'Average latency').locator('canvas').waitFor();
    const calls = daily.reduce((sum, day) => sum + day.call_count, 0);
    const atRest = chartHeading(page, 'Calls');
    assert.match(await atRest.innerText(), new RegExp(`7 days\\s+${calls}`));

    // The area without the axes.
    const area = await chart(page, 'Cost').locator('.u-over').boundingBox();
    assert.ok(area !== null);
    for (const [index, day] of daily.entries()) {
      const x = area.x + (area.width * (index + 0.5)) / daily.length;
      await page.mouse.move(x, area.y + area.height / 2);
      await eventually(async () =>
        assert.match(await chartHeading(page, 'Calls').innerText(), new RegExp(`${day.label}\\b`)),
      );
      assert.deepEqual(await lookedAt(page), {
        labels: [day.label, day.label, day.label],
        calls: day.call_count,
        errors: day.error_count,
        cost: round(day.total_cost_usd),
        latency: day.call_count === 0 ? null : day.avg_latency_ms,
      });
    }
    await page.mouse.move(0, 0);
    await eventually(async () => assert.match(await atRest.innerText(), /7 days/));
  }),
);

async function lookedAt(page: Page) {
  const names = ['Calls', 'Cost', 'Average latency'];
  const values = names.map((name) => chartHeading(page, name).getByRole('paragraph'));
  const [calls, cost, latency] = values;
  assert.ok(calls !== undefined && cost !== undefined && latency !== undefined);
  const labels = values.map((value) => value.locator('span').first().innerText());
  return {
    labels: await Promise.all(labels),
    calls: await exactNumber(calls.locator('> span').nth(1)),
    errors: Number(/(\d+) errors?$/.exec((await calls.innerText()).trim())?.[1]),
    cost: await exactNumber(cost.locator('> span').nth(1)),
    latency: await exactNumber(latency.locator('> span').nth(1)),
  };
}

test(
  'the height of a bar matches its value, and a day without calls has no bar',
  inBrowser(async (visit) => {
    const { page } = visit;
    await recordWeek(visit.service, visit.key, clock);
    await visit.open();
    const daily = await ask<DailyRecord[]>(visit, '/analytics/daily');
    for (const [name, of] of [
      ['Calls', (day: DailyRecord) => day.call_count],
      ['Cost', (day: DailyRecord) => day.total_cost_usd],
    ] as const) {
      await chart(page, name).locator('canvas').waitFor();
      await eventually(async () => {
        const heights = await barHeights(chart(page, name), daily.length);
        const values = daily.map(of);
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
  'a table shows the same days, today first',
  inBrowser(async (visit) => {
    const { page } = visit;
    await recordWeek(visit.service, visit.key, clock);
    await visit.open();
    const daily = await ask<DailyRecord[]>(visit, '/analytics/daily');
    await page.getByRole('group', { name: 'Show the days as' }).getByText('Table').click();
    const table = page.getByRole('table', { name: /per day/ });
    const rows = table.getByRole('row');
    await eventually(async () => assert.equal(await rows.count(), 1 + daily.length));
    assert.deepEqual(await rows.first().getByRole('columnheader').allInnerTexts(), [
      'Day',
      'Calls',
      'Errors',
      'Cost',
      'Average latency',
    ]);
    for (const [index, day] of daily.toReversed().entries()) {
      const row = rows.nth(index + 1);
      assert.equal(await row.getByRole('rowheader').innerText(), day.label);
      const cells = await row.getByRole('cell').all();
      assert.deepEqual(await Promise.all(cells.map(exactNumber)), [
        day.call_count,
        day.error_count,
        day.total_cost_usd,
        day.call_count === 0 ? null : day.avg_latency_ms,
      ]);
    }
  }),
);
