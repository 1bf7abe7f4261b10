import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stumblingBlocks } from './support/axe.ts';
import { recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';

const { inBrowser } = openStage();

for (const colorScheme of ['light', 'dark'] as const) {
  test(
    `axe finds no problem in any view in the ${colorScheme} theme`,
    inBrowser(
      async ({ page, home, service, key, link, open, go }) => {
        const isClear = async (): Promise<void> =>
          assert.deepEqual(await stumblingBlocks(page, colorScheme), []);
        await page.goto(home);
        await page.getByLabel('API key').waitFor();
        await isClear();
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByText('No key entered').waitFor();
        await isClear();

        await open();
        await page.getByText('Waiting for the first trace').waitFor();
        await isClear();

        const plain = {
          feature_name: 'chat',
          cost_usd: 0.01,
          latency_ms: 840,
          run_id: 'run',
          metadata: { customer: 'acme' },
        };
        await recordOne(service, key, plain);
        const messages = [{ role: 'user', content: 'Hello!' }];
        const trace = await recordOne(service, key, {
          ...plain,
          feature_name: null,
          input: JSON.stringify(messages),
          output: 'Hi! '.repeat(10_000),
          error_message: 'It was cut off.',
        });
        await page.getByRole('table', { name: /^Features/ }).waitFor();
        await page
          .getByRole('slider', { name: /^Calls/ })
          .locator('canvas')
          .waitFor();
        await isClear();
        await page.getByRole('group', { name: 'Show the series as' }).getByText('Table').click();
        await page.getByRole('table', { name: /^Calls, errors/ }).waitFor();
        await isClear();

        // With a period before, whose differences have colors of their own.
        const earlier = new Date(Date.now() - 8 * 86_400_000).toISOString();
        await recordOne(service, key, { ...plain, started_at: earlier, latency_ms: 2_000 });
        await recordOne(service, key, { ...plain, started_at: earlier, cost_usd: 0.001 });
        await go('#/?last=7d&model=gpt-4o&feature_name=');
        await page.getByRole('list', { name: 'Filters' }).waitFor();
        await go('#/?last=7d&model=gpt-4o');
        await page.locator('.change').first().waitFor();
        await page.getByRole('slider', { name: /^Cost/ }).focus();
        await page.keyboard.press('ArrowLeft');
        await page.getByRole('button', { name: 'Filter', exact: true }).click();
        await page.getByRole('form', { name: 'Add a filter' }).waitFor();
        await isClear();
        await page
          .getByRole('combobox', { name: 'Time range' })
          .selectOption({ label: 'Custom dates…' });
        await page.getByLabel('First day').waitFor();
        await isClear();
        await go('#/users');
        await page.getByRole('table', { name: /^Users/ }).waitFor();
        await isClear();

        await go('#/traces');
        await page.getByRole('table').waitFor();
        await isClear();
        await go('#/traces?status=error');
        await page.getByText('No more traces.').waitFor();
        await isClear();
        await go('#/traces?q=nothing');
        await page.getByText('No trace matches.').waitFor();
        await isClear();
        await go(`#/traces/${trace.id}`);
        await page.getByRole('region', { name: 'Output' }).waitFor();
        await page.getByRole('table', { name: /^Calls of this run/ }).waitFor();
        await isClear();
        await go('#/traces/nonsense');
        await page.getByText('Trace not found').waitFor();
        await isClear();

        await go((await link()).replace(home, ''));
        await page.getByRole('heading', { name: 'Sign in again?' }).waitFor();
        await isClear();
      },
      { colorScheme, reducedMotion: 'reduce' },
    ),
  );
}
