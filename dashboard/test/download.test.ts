import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { record } from './support/seed.ts';
import { openStage } from './support/stage.ts';

const { inBrowser } = openStage();

/** What the button saves, without the mark at its beginning. */
async function download(page: Page, name: string): Promise<{ file: string; lines: string[] }> {
  const begun = page.waitForEvent('download');
  await page.getByRole('button', { name: `Download CSV: ${name}` }).click();
  const saved = await begun;
  const text = readFileSync(await saved.path(), 'utf8');
  assert.ok(text.startsWith('\uFEFF'));
  return { file: saved.suggestedFilename(), lines: text.slice(1).trimEnd().split('\r\n') };
}

test(
  'every table can be downloaded as CSV, in which no name is a formula, without a request',
  inBrowser(async ({ page, home, service, key, open, go, watch }) => {
    const names = ['=1+1', '+x', '-x', '@x', 'plain, "quoted"'];
    const stored = await record(
      service,
      key,
      names.map((name, index) => ({
        model: name,
        feature_name: name,
        user_identifier: name,
        run_id: 'r',
        latency_ms: 10,
        cost_usd: index + 1,
      })),
    );
    const cells = ["'=1+1", "'+x", "'-x", "'@x", '"plain, ""quoted"""'];
    await open();
    await page.getByRole('table', { name: /^Features/ }).waitFor();
    for (const title of ['Models', 'Features']) {
      const { file, lines } = await download(page, title);
      assert.equal(file, `tracetally-${title.toLowerCase()}.csv`);
      const field = title === 'Models' ? 'model' : 'feature_name';
      assert.deepEqual(lines, [
        `${field},cost_usd,calls,errors,average_latency_ms,p95_latency_ms`,
        ...cells.map((cell, index) => `${cell},${index + 1},1,0,10,10`).toReversed(),
      ]);
    }
    await page.getByRole('group', { name: 'Show the series as' }).getByText('Table').click();
    const days = await download(page, 'Over time');
    assert.equal(days.lines.length, 8);
    assert.match(days.lines[1] ?? '', /^\d{4}-\d\d-\d\dT00:00:00\+00:00,5,0,15,10,10,10,10,0,0,0$/);
    const groups = await download(page, 'Cost by model');
    assert.equal(groups.lines[0], ['start', ...cells.toReversed()].join(','));
    assert.match(groups.lines[1] ?? '', /,5,4,3,2,1$/);

    await go('#/users');
    await page.getByRole('table', { name: /^Users/ }).waitFor();
    const users = await download(page, 'Users');
    assert.deepEqual(
      users.lines.slice(1),
      cells.map((cell, i) => `${cell},${i + 1},1,0,10`).toReversed(),
    );

    for (const list of ['#/traces', '#/traces?last=7d']) {
      await go(list);
      await page.getByRole('table', { name: /^Traces/ }).waitFor();
      const traces = await download(page, 'Traces');
      assert.equal(traces.lines.length, 6);
      const columns = (traces.lines[0] ?? '').split(',');
      const oldest = (traces.lines.at(-1) ?? '').split(',');
      assert.equal(oldest[columns.indexOf('id')], stored[0]?.id);
      assert.equal(oldest[columns.indexOf('model')], "'=1+1");
      assert.equal(oldest[columns.indexOf('cost_usd')], '1');
    }
    await go(`#/traces/${stored[0]?.id}`);
    await page.getByRole('table', { name: /^Calls of this run/ }).waitFor();
    const since = watch.requests.length;
    const timeline = await download(page, 'Timeline');
    assert.equal(timeline.lines.length, 6);
    const asked = watch.apiCalls(home, since).filter((path) => path !== 'analytics/overview');
    assert.deepEqual(asked, []);
  }),
);
