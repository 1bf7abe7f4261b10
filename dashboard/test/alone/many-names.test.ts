import { test } from 'node:test';
import { assertNotBlocked, watchTasks } from '../support/frames.ts';
import { recordNames } from '../support/names.ts';
import { openStage } from '../support/stage.ts';

const { inBrowser } = openStage();

/** See `assertNotBlocked`. */
const controlsMax = 12;

test(
  'an overview of very many names never blocks the page, even when all listed names are shown',
  inBrowser(async (visit) => {
    const { page, open, go } = visit;
    await recordNames(visit, 3_000, 40);
    await open('#/traces');
    await page.getByRole('table').waitFor();
    await watchTasks(visit);
    await go('#/');
    for (const title of ['Models', 'Features']) {
      const region = page.getByRole('region', { name: title });
      await region.getByRole('button', { name: 'Show all 100' }).click();
      await region.getByRole('row').nth(101).waitFor();
    }
    await assertNotBlocked(visit, controlsMax);
  }),
);
