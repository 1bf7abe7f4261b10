import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { Trace, TraceInput } from '../../client/src/api-types.ts';
import { setOwnPrice } from '../../server/test/support/own-price.ts';
import { isClearInBothThemes } from './support/axe.ts';
import { hostileTexts } from './support/hostile-text.ts';
import { allCanBePressed, fits, phone } from './support/phone.ts';
import { recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import type { Visit } from './support/stage.ts';
import { isUntouched } from './support/untouched.ts';
import { eventually, settled } from './support/wait.ts';

const { inBrowser } = openStage({ flags: { 'price-missing-costs': 'true' } });

const call = { provider: 'openai', prompt_tokens: 1_000, completion_tokens: 100 };
const cached: TraceInput = { model: 'gpt-4o', ...call, cache_read_tokens: 800 };
const tiered: TraceInput = {
  model: 'gemini-2.5-pro',
  provider: 'google',
  prompt_tokens: 200_001,
  completion_tokens: 7,
  started_at: '2026-11-01T12:00:00Z',
};

function origin(page: Page): Locator {
  return page.getByRole('region', { name: 'Computed cost' });
}

/** The rows of the formula: name, count, price, cost. */
async function formula(place: Locator): Promise<string[][]> {
  await place.getByRole('table').waitFor();
  const rows = await place.locator('tbody').getByRole('row').all();
  return Promise.all(rows.map((row) => row.locator('th, td').allInnerTexts()));
}

/** `$0.0025` in pico-dollars. */
function picos(text: string): bigint {
  const [whole = '', fraction = ''] = text.replace('$', '').replaceAll(',', '').split('.');
  assert.ok(fraction.length <= 12, text);
  return BigInt(whole + fraction.padEnd(12, '0'));
}

async function addsUp(rows: readonly string[][], trace: Trace): Promise<void> {
  const parts = rows.slice(0, -1);
  for (const [name = '', count = '', price = '', cost = ''] of parts) {
    const product = BigInt(count.replaceAll(',', '')) * picos(price.replace('× ', ''));
    assert.equal(product / 1_000_000n, picos(cost), name);
  }
  const sum = parts.reduce((total, row) => total + picos(row[3] ?? ''), 0n);
  assert.equal(picos(rows.at(-1)?.[3] ?? ''), sum);
  assert.equal(Number(sum) / 1e12, trace.cost_usd);
}

async function openFormula({ page, open }: Visit, trace: Trace): Promise<string[][]> {
  await open(`#/traces/${trace.id}`);
  await origin(page).locator('summary').click();
  return formula(origin(page));
}

test(
  'a computed cost shows the prices and a formula whose sum is the stored cost, to the last digit',
  inBrowser(async (visit) => {
    const { page, service, key, teamId } = visit;
    const stored = await recordOne(service, key, cached);
    const rows = await openFormula(visit, stored);
    assert.deepEqual(rows, [
      ['Other input', '200', '× $2.50', '$0.0005'],
      ['Input read from the cache', '800', '× $1.25', '$0.0010'],
      ['Output', '100', '× $10.00', '$0.0010'],
      ['Cost', '', '', '$0.0025'],
    ]);
    await addsUp(rows, stored);
    await origin(page)
      .locator('summary')
      .getByText('(200 × $2.50 + 800 × $1.25 + 100 × $10.00) ÷ 1,000,000 = $0.0025')
      .waitFor();
    assert.match(
      await origin(page).innerText(),
      /Prices of gpt-4o from openai in the price list of the server\./,
    );

    const large = await recordOne(service, key, tiered);
    const largeRows = await openFormula(visit, large);
    await addsUp(largeRows, large);
    assert.equal(largeRows[0]?.[2], '× $2.50');
    assert.match(
      await origin(page).innerText(),
      /, for calls with more than 200,000 input tokens\./,
    );

    const dated = await recordOne(service, key, { model: 'o3', ...call });
    await addsUp(await openFormula(visit, dated), dated);
    assert.match(await origin(page).innerText(), /of o3 from openai .*, from 2025-06-10 on\./);

    // A price of the operator, for this team, from a day on.
    await setOwnPrice(
      service.beside,
      'mine',
      { input: 0.000_001, output: 2 },
      { teamId, fromDay: 1 },
    );
    const own = await eventually(async () => {
      const trace = await recordOne(service, key, { model: 'mine', ...call });
      assert.notEqual(trace.cost_usd, null);
      return trace;
    });
    const ownRows = await openFormula(visit, own);
    await addsUp(ownRows, own);
    assert.deepEqual(ownRows[0], ['Input', '1,000', '× $0.000001', '$0.000000001']);
    assert.match(
      await origin(page).innerText(),
      /Your own prices of mine, for this team, from 1970-01-02 on\./,
    );
  }),
);

/** Waits until the server has noticed a price. */
async function isOutdated({ service, key }: Visit, { id }: Trace): Promise<void> {
  await eventually(async () => {
    const { json } = await service.call(key, 'GET', `/traces/${id}/cost`);
    assert.equal(json.is_current, false);
  });
}

test(
  'if the prices have changed since, the page shows no formula for the stored cost, but what they give today and the command that changes it',
  inBrowser(
    async (visit) => {
      const { page, service, key, team, teamId, open } = visit;
      const stored = await recordOne(service, key, tiered);
      await setOwnPrice(service.beside, tiered.model, { input: 1, output: 2 }, { teamId });
      await isOutdated(visit, stored);
      await open(`#/traces/${stored.id}`);
      await origin(page).getByText('The prices have changed since').waitFor();
      const words = await origin(page).innerText();
      assert.match(words, /Today they give \$0\.200015; \$0\.5001075 is stored\./);
      const rows = await formula(origin(page));
      assert.deepEqual(rows.at(-1), ['By today’s prices', '', '', '$0.200015']);
      await origin(page)
        .getByRole('button', { name: /computes the cost again/ })
        .click();
      const command = `tracetally reprice --from 2026-11-01 --to 2026-11-01 --model ${tiered.model} --team ${team}`;
      await eventually(async () =>
        assert.equal(await page.evaluate(() => navigator.clipboard.readText()), command),
      );
      // A price that is gone altogether.
      await setOwnPrice(service.beside, 'brief', { input: 1, output: 2 }, { teamId });
      const lost = await eventually(async () => {
        const trace = await recordOne(service, key, { model: 'brief', ...call });
        assert.equal(trace.cost_usd, 0.0012);
        return trace;
      });
      await setOwnPrice(service.beside, 'brief', null, { teamId });
      await isOutdated(visit, lost);
      await open(`#/traces/${lost.id}`);
      await origin(page)
        .getByText('Today there is no price for this call; $0.0012 is stored.')
        .waitFor();
      assert.equal(await origin(page).getByRole('table').count(), 0);
    },
    { permissions: ['clipboard-read', 'clipboard-write'] },
  ),
);

test(
  'a call without a cost says why, and a cost that was sent is not explained',
  inBrowser(async ({ page, home, service, key, open, watch }) => {
    const why = page.getByRole('region', { name: 'Why there is no cost' });
    const cases: [trace: Partial<TraceInput>, words: RegExp][] = [
      [{ model: 'gpt-4o' }, /without a cost and without token counts/],
      [{ model: 'my-model', ...call }, /There is no price for this model\. Set one/],
      [{ ...cached, provider: 'ollama' }, /the provider "ollama" is not in it/],
      [{ model: 'gpt-4o', completion_tokens: 1, cache_read_tokens: 5 }, /does not say what these/],
    ];
    for (const [trace, words] of cases) {
      const { id } = await recordOne(service, key, trace);
      await open(`#/traces/${id}`);
      await why.getByText(words).waitFor();
    }
    const sent = await recordOne(service, key, { ...cached, cost_usd: 0.25 });
    await open(`#/traces/${sent.id}`);
    await page.getByText('sent by the app').waitFor();
    await settled(page, home);
    assert.equal(await page.getByText('Computed cost').count(), 0);
    assert.ok(!watch.apiCalls(home).includes(`traces/${sent.id}/cost`));
  }),
);

test(
  'a hostile model name is shown as text in every step and command',
  inBrowser(async ({ page, service, key, open, go }) => {
    const names = hostileTexts
      .map((text) => text.toWellFormed())
      .filter((text, index) => index % 10 === 0 && text.length <= 255);
    assert.ok(names.length >= 6);
    const ids: string[] = [];
    for (const model of names) ids.push((await recordOne(service, key, { model, ...call })).id);
    await open('#/traces');
    for (const [index, model] of names.entries()) {
      await go(`#/traces/${ids[index]}`);
      const place = page.getByRole('region', { name: 'Why there is no cost' });
      await place.getByRole('listitem').first().waitFor();
      await eventually(async () => {
        const words = await place.getByRole('listitem').allTextContents();
        assert.ok(
          words.some((text) => text.includes(`"${model}"`)),
          words.join(),
        );
      });
      const command = (await place.locator('.command code').first().textContent()) ?? '';
      const quoted = model.replaceAll("'", String.raw`'\''`);
      assert.ok(command.includes(quoted), command);
      await isUntouched(page);
    }
  }),
);

test(
  'axe finds no problem in an explained cost in either theme, and it fits on a phone',
  inBrowser(async ({ page, service, key, open, go }) => {
    const most = { prompt_tokens: 2_147_483_647, completion_tokens: 2_147_483_647 };
    const large = await recordOne(service, key, { ...tiered, ...most, cache_read_tokens: 7 });
    const none = await recordOne(service, key, { ...call, model: 'm'.repeat(255) });
    await open(`#/traces/${large.id}`);
    await origin(page).locator('summary').click();
    await formula(origin(page));
    await fits(page);
    await isClearInBothThemes(page);
    await go(`#/traces/${none.id}`);
    await page.getByText('There is no price for this model').waitFor();
    await fits(page);
    await allCanBePressed(page, 8);
    await isClearInBothThemes(page);
  }, phone),
);
