import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allCanBePressed, fits, phone } from './support/phone.ts';
import { plainTraces, record, recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import type { Visit } from './support/stage.ts';

const { inBrowser } = openStage();

/** Names as long as they may be, without a place to break, and the largest numbers there are. */
const wide = {
  model: 'm'.repeat(255),
  feature_name: 'f'.repeat(255),
  user_identifier: 'u'.repeat(255),
  input: 'i'.repeat(5_000),
  output: JSON.stringify({ ['k'.repeat(300)]: 'v'.repeat(300) }),
  error_message: 'e'.repeat(5_000),
  prompt_tokens: 2_147_483_647,
  completion_tokens: 2_147_483_647,
  latency_ms: 2_147_483_647,
  cost_usd: 999_999.999_999,
  environment: 'v'.repeat(255),
  provider: 'p'.repeat(255),
  response_model: 'r'.repeat(255),
  session_id: 's'.repeat(255),
  run_id: 'n'.repeat(255),
  error_type: 't'.repeat(255),
  metadata: { ['k'.repeat(64)]: 'v'.repeat(255) },
};

async function recordAll({ service, key }: Visit): Promise<string> {
  await record(service, key, plainTraces(60));
  const trace = await recordOne(service, key, wide);
  return trace.id;
}

test(
  'at 360 px no view scrolls sideways, and every control can be tapped',
  inBrowser(async (visit) => {
    const { page, home, go } = visit;
    await page.goto(home);
    await page.getByLabel('API key').waitFor();
    await fits(page);
    await allCanBePressed(page, 2);

    await visit.open();
    await page.getByText('Waiting for the first trace').waitFor();
    await fits(page);
    await allCanBePressed(page, 8);

    const id = await recordAll(visit);
    await page.getByRole('table', { name: /^Models/ }).waitFor();
    await fits(page);
    await allCanBePressed(page, 20);
    await page.getByRole('group', { name: 'Show the series as' }).getByText('Table').click();
    await page.getByRole('table', { name: /^Calls, errors/ }).waitFor();
    await fits(page);

    await page
      .getByRole('combobox', { name: 'Time range' })
      .selectOption({ label: 'Custom dates…' });
    await page.getByLabel('First day').waitFor();
    await fits(page);
    const filters = new URLSearchParams({
      model: wide.model,
      feature_name: wide.feature_name,
      user_identifier: wide.user_identifier,
      environment: wide.environment,
      status: 'error',
    });
    for (const view of ['#/', '#/users', '#/traces']) {
      await go(`${view}?${filters.toString()}`);
      await page.getByRole('list', { name: 'Filters' }).waitFor();
      await page.getByRole('table').first().waitFor();
      await fits(page);
      await allCanBePressed(page, 15);
      await page.getByRole('button', { name: 'Filter', exact: true }).click();
      await page.getByRole('form', { name: 'Add a filter' }).waitFor();
      await fits(page);
      await page.keyboard.press('Escape');
    }

    await go('#/traces');
    await page.getByRole('table').waitFor();
    await fits(page);
    await allCanBePressed(page, 55);
    const row = page.getByRole('row').nth(2);
    for (const words of ['user-60', 'chat', 'Success', '159 ms', '$0.001'])
      assert.ok((await row.innerText()).includes(words), words);

    await go(`#/traces/${id}`);
    await page.getByRole('region', { name: 'Output' }).waitFor();
    await page.getByRole('table', { name: /^Calls of this/ }).waitFor();
    await fits(page);
    await allCanBePressed(page, 12);
    await go('#/traces/nonsense');
    await page.getByText('Trace not found').waitFor();
    await fits(page);
  }, phone),
);

test(
  'at 360 px taps open a trace, change the page, sort, and sign out',
  inBrowser(async (visit) => {
    const { page } = visit;
    await recordAll(visit);
    await visit.open();
    const calls = page
      .getByRole('table', { name: /^Models/ })
      .getByRole('columnheader', { name: 'Calls' });
    await calls.getByRole('button').tap();
    assert.equal(await calls.getAttribute('aria-sort'), 'descending');
    await page.getByRole('link', { name: 'Traces', exact: true }).tap();
    await page.getByRole('link', { name: 'Next page' }).tap();
    await page.getByRole('row').nth(2).tap();
    await page.getByRole('region', { name: 'Input' }).getByText('question 10').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).tap();
    await page.getByLabel('API key').waitFor();
  }, phone),
);
