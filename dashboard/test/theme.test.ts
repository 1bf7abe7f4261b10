import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

/** How light the ground is as drawn, from 0 (black) to 255. */
async function lightness(page: Page): Promise<number> {
  const colour = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const [red = 0, green = 0, blue = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return (red + green + blue) / 3;
}

async function isLight(page: Page): Promise<void> {
  await eventually(async () => assert.ok((await lightness(page)) > 200));
}

async function isDark(page: Page): Promise<void> {
  await eventually(async () => assert.ok((await lightness(page)) < 60));
}

for (const colorScheme of ['light', 'dark'] as const) {
  test(
    `on a ${colorScheme} system the page is ${colorScheme}`,
    inBrowser(
      async ({ page, home, service, key, open }) => {
        const check = colorScheme === 'light' ? isLight : isDark;
        await page.goto(home);
        await page.getByLabel('API key').waitFor();
        await check(page);
        await recordOne(service, key);
        await open();
        await check(page);
      },
      { colorScheme },
    ),
  );
}

test(
  'the page follows the system theme until the user chooses one, and the choice is kept for later visits',
  inBrowser(
    async ({ page, context, home, service, key, open }) => {
      await recordOne(service, key);
      await open();
      await page.emulateMedia({ colorScheme: 'dark' });
      await isDark(page);
      await page.emulateMedia({ colorScheme: 'light' });
      await isLight(page);
      await page.getByRole('button', { name: 'Switch to dark theme' }).click();
      await isDark(page);
      // The system's turn no longer counts.
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.emulateMedia({ colorScheme: 'light' });
      await isDark(page);

      await page.reload();
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      assert.ok((await lightness(page)) < 60, 'from the first moment on');
      const tab = await context.newPage();
      await tab.goto(home);
      await tab.getByRole('heading', { name: 'Overview' }).waitFor();
      assert.ok((await lightness(tab)) < 60);
      await tab.getByRole('button', { name: 'Switch to light theme' }).click();
      await isLight(tab);
    },
    { colorScheme: 'light' },
  ),
);
