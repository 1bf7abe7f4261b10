import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterFields } from '../src/view/filters.ts';
import type { FilterField } from '../src/view/filters.ts';
import { hostileTexts } from './support/hostile-text.ts';
import { record } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { isUntouched } from './support/untouched.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

/** Labels have no control characters, and invalid Unicode is stored as U+FFFD. */
const texts = hostileTexts.map((text) => text.toWellFormed()).filter((text) => text.length <= 255);
const labels = filterFields.filter((field) => field !== 'status');

function href(path: string, filters: Partial<Record<FilterField, string>>): string {
  return `${path}?${new URLSearchParams(filters).toString()}`;
}

test(
  'no name is executed, loaded or parsed as markup in any filter, chip, legend or suggestion; it is shown as is and finds its trace',
  inBrowser(async ({ page, home, service, key, open, go, watch }) => {
    assert.ok(texts.length >= 50);
    await record(
      service,
      key,
      texts.map((text) => ({
        ...Object.fromEntries(labels.map((field) => [field, text])),
        model: text,
        cost_usd: 1,
      })),
    );
    await open();
    for (const [index, text] of texts.entries()) {
      // Each text once in one field, and every field many times.
      const field = labels[index % labels.length] ?? 'model';
      await go(href('#/traces', { [field]: text }));
      const chip = page.getByRole('list', { name: 'Filters' }).getByRole('listitem');
      await eventually(async () =>
        assert.equal(await chip.locator('bdi').textContent(), text, `${field} ${text}`),
      );
      await page.getByText('1 trace, newest first').waitFor();
      await isUntouched(page);
    }
    // All fields at once, with the charts and their legends.
    for (const text of texts.filter((_text, index) => index % 12 === 0)) {
      await go(href('#/', Object.fromEntries(labels.map((field) => [field, text]))));
      const chips = page.getByRole('list', { name: 'Filters' }).locator('bdi');
      await eventually(async () =>
        assert.deepEqual(
          await chips.allTextContents(),
          labels.map(() => text),
        ),
      );
      const legend = page.getByRole('list', { name: 'Calls: legend' }).locator('bdi');
      await eventually(async () => assert.deepEqual(await legend.allTextContents(), [text]));
      await isUntouched(page);
    }
    await go('#/');
    await page.getByRole('button', { name: 'Filter', exact: true }).click();
    await eventually(async () =>
      assert.equal(await page.locator('datalist option').count(), texts.length),
    );
    await isUntouched(page);
    await go('#/users');
    await page.getByRole('table', { name: /^Users/ }).waitFor();
    await isUntouched(page);
    for (const path of watch.apiCalls(home))
      assert.match(path, /^(analytics\/(overview|query\?.*|query)|traces\?.*)$/);
  }),
);

test(
  'no text in a search or in any parameter of the address is executed, loaded or parsed as markup',
  inBrowser(async ({ page, service, key, open, go }) => {
    await record(service, key, [{ model: 'm', input: 'x' }]);
    await open();
    for (const text of texts.filter((_text, index) => index % 6 === 0)) {
      await go(`#/traces?${new URLSearchParams({ q: text }).toString()}`);
      await page.getByText('No trace matches.').waitFor();
      assert.equal(await page.getByRole('searchbox').inputValue(), text.replaceAll(/[\r\n]/g, ''));
      await isUntouched(page);
      await go(`#/users?${new URLSearchParams({ search: text, order: text }).toString()}`);
      await page.getByText('No user matches.').waitFor();
      await isUntouched(page);
      const all = ['last', 'from', 'to', 'period', 'stack', 'split', 'share', 'show', 'cursor'];
      const query = new URLSearchParams(all.map((name) => [name, text])).toString();
      await go(`#/?${query}`);
      await page.getByRole('table', { name: /^Models/ }).waitFor();
      await isUntouched(page);
    }
  }),
);
