import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { parsePrice } from '../../server/src/cli/price-flags.ts';
import { pricesSet } from '../../server/src/cli/prices-set.ts';
import { reprice } from '../../server/src/cli/reprice.ts';
import { parseCall } from '../../server/src/cli/usage.ts';
import { repriceWords, setPriceWords } from '../src/parts/price-commands.ts';
import { isClearInBothThemes } from './support/axe.ts';
import { hostileTexts } from './support/hostile-text.ts';
import { allCanBePressed, fits, phone } from './support/phone.ts';
import { record } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { isUntouched } from './support/untouched.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

/** The arguments that a POSIX shell makes of each command. */
function argumentsOf(commands: readonly (readonly string[])[]): string[][] {
  const lines = commands.map((words) => `${words.join(' ')}\nprintf '\\001'`);
  const script = `tracetally() { printf '%s\\000' "$@"; }\n${lines.join('\n')}\n`;
  const output = execFileSync('sh', { input: script }).toString();
  return output
    .split('\u0001')
    .slice(0, -1)
    .map((part) => part.split('\0').slice(0, -1));
}

const names = [
  ...hostileTexts.map((text) => text.toWellFormed()),
  '-x',
  '--input',
  '--',
  '-',
  '~',
  '$HOME',
  '`id`',
  "it's",
  '!!',
  'a  b',
  'gpt-4o',
  'openai/gpt-4o@2024:x',
];

test('any name stays one word in the commands that set a price and compute costs again', () => {
  const set = argumentsOf(names.map(setPriceWords));
  const again = argumentsOf(
    names.map((name) => repriceWords({ team: name, model: name, from: '2026-11-01' })),
  );
  for (const [index, name] of names.entries()) {
    const { words, flags } = parseCall(pricesSet, set[index]?.slice(2) ?? []);
    assert.deepEqual([words, flags['input'], flags['output']], [[name], 'USD', 'USD']);
    const { flags: asked } = parseCall(reprice, again[index]?.slice(1) ?? []);
    assert.deepEqual([asked['model'], asked['team'], asked['from']], [name, name, '2026-11-01']);
  }
  assert.throws(() => parsePrice('input', 'USD'), /must be US dollars/);
});

function panel(page: Page): Locator {
  return page.getByRole('region', { name: 'Calls without a cost' });
}

async function rows(page: Page): Promise<string[][]> {
  const lines = await panel(page).locator('tbody').getByRole('row').all();
  const cells = await Promise.all(lines.map((row) => row.locator('th, td').allInnerTexts()));
  return cells.map((texts) => texts.slice(0, 4));
}

test(
  'the overview says how many calls of the range and the filters have no cost, and lists their models',
  inBrowser(async ({ page, service, key, open, go }) => {
    const long = new Date(Date.now() - 20 * 86_400_000).toISOString();
    await record(service, key, [
      { model: 'mine', provider: 'ollama' },
      { model: 'mine', provider: 'ollama', feature_name: 'chat' },
      { model: 'mine', cost_usd: 1 },
      { model: 'gpt-4o', feature_name: 'chat', prompt_tokens: 1_000, completion_tokens: 100 },
      { model: 'gpt-4o', cost_usd: 1 },
      { model: 'free', cost_usd: 0 },
      { model: 'older', started_at: long },
    ]);
    await open();
    await panel(page).getByText('3 of 6 calls have no cost.').waitFor();
    await go('#/?feature_name=chat');
    await panel(page).getByText('2 of 2 calls have no cost.').waitFor();
    await go('#/?model=older&last=30d');
    await panel(page).getByText('1 of 1 call has no cost.').waitFor();
    await go('#/?model=free');
    await panel(page).waitFor({ state: 'detached' });

    await go('#/');
    await panel(page).getByRole('link', { name: 'Show the models' }).click();
    await panel(page).getByRole('table').waitFor();
    assert.deepEqual(await rows(page), [
      ['mine', 'ollama', '2', '2'],
      ['gpt-4o', 'not set', '1', '2'],
    ]);
    assert.match(page.url(), /#\/\?costs=missing$/);
    await page.reload();
    await panel(page).getByText('tracetally prices set mine --input USD --output USD').waitFor();
    await panel(page).getByRole('row', { name: 'gpt-4o' }).getByRole('link').last().click();
    await page.getByText('2 traces, newest first').waitFor();
    await page.getByRole('row', { name: /chat/ }).getByRole('link').first().click();
    await page.getByText('runs without --price-missing-costs').waitFor();
    await page.getByRole('table', { name: 'What today’s prices give' }).waitFor();
    await page.goBack();
    await page.goBack();
    await panel(page).getByRole('link', { name: 'Hide the models' }).click();
    await panel(page).getByRole('table').waitFor({ state: 'detached' });
  }),
);

test(
  'hostile names of models without a cost are text, copied as one word, clear to axe in either theme, and fit on a phone',
  inBrowser(
    async ({ page, service, key, open }) => {
      const hostile = names.filter((name, index) => index % 6 === 0 && name.length <= 255);
      await record(service, key, [
        ...hostile.map((model) => ({ model, provider: model })),
        { model: 'm'.repeat(255), provider: 'p'.repeat(255) },
      ]);
      await open('#/?costs=missing');
      await panel(page)
        .getByRole('button', { name: /^Show all/ })
        .click();
      await eventually(async () => assert.ok((await rows(page)).length > hostile.length));
      await isUntouched(page);
      await fits(page);
      await allCanBePressed(page, hostile.length * 3);
      await isClearInBothThemes(page);
      const shown = await rows(page);
      for (const index of [0, 1, shown.length - 1]) {
        const [model = ''] = shown[index] ?? [];
        await panel(page)
          .getByRole('button', { name: 'Copy the command that sets a price for' })
          .nth(index)
          .click();
        await eventually(async () => {
          const command = await page.evaluate(() => navigator.clipboard.readText());
          const [args = []] = argumentsOf([[command]]);
          assert.deepEqual(parseCall(pricesSet, args.slice(2)).words, [model]);
        });
      }
    },
    { permissions: ['clipboard-read', 'clipboard-write'], ...phone },
  ),
);
