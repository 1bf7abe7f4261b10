import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seenFrames, watchFrames } from '../support/frames.ts';
import { recordNames } from '../support/names.ts';
import { openStage } from '../support/stage.ts';

const { inBrowser } = openStage();

const blockedMsMax = 500;

test(
  'an overview of very many names never blocks the page, even when all listed names are shown',
  inBrowser(async (visit) => {
    const { t, page, open, go } = visit;
    await recordNames(visit, 3_000, 40);
    await open('#/traces');
    await page.getByRole('table').waitFor();
    await watchFrames(page);
    await go('#/');
    for (const title of ['Models', 'Features']) {
      const region = page.getByRole('region', { name: title });
      await region.getByRole('button', { name: 'Show all 100' }).click();
      await region.getByRole('row').nth(101).waitFor();
    }
    const { longestTaskMs } = await seenFrames(page);
    t.diagnostic(`longest task ${longestTaskMs.toFixed(0)} ms`);
    assert.ok(longestTaskMs < blockedMsMax, `the page was blocked for ${longestTaskMs} ms`);
  }),
);
