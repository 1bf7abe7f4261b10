import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { exactNumber } from './support/numbers.ts';
import { recordOne } from './support/seed.ts';
import { openStage } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

function payload(page: Page, name: 'Input' | 'Output' | 'Error'): Locator {
  return page.getByRole('region', { name });
}

/** The value beside a name in the list of facts. */
function fact(page: Page, name: string): Locator {
  return page
    .getByRole('main')
    .locator('dl > div', { has: page.getByText(name, { exact: true }) })
    .locator('dd');
}

/** The text of a payload without its heading and its buttons. */
async function shows(place: Locator, text: string): Promise<void> {
  await eventually(async () =>
    assert.equal((await place.locator('[dir=auto]').allTextContents()).join('\n'), text),
  );
}

function showAs(place: Locator, view: 'Messages' | 'JSON' | 'Raw'): Promise<void> {
  return place.getByRole('group').getByText(view, { exact: true }).click();
}

test(
  'a damaged trace shows an error, and the list that contains it stays usable',
  inBrowser(async ({ page, service, key, open }) => {
    const harmed = await recordOne(service, key, { model: 'harmed', error_message: 'x' });
    const whole = await recordOne(service, key, { model: 'whole' });
    const ofHarmed = "key = (select key from traces where model = 'harmed')";
    await service.sql(`update trace_payloads set error_message = x'ff' where ${ofHarmed}`);
    await open(`#/traces/${harmed.id}`);
    await page.getByRole('alert').getByText('This trace is damaged').waitFor();
    await open('#/traces');
    const row = page.getByRole('row', { name: 'harmed' });
    await row.getByText('Damaged: error_message').waitFor();
    await page.getByRole('link', { name: /, whole$/ }).click();
    await page.getByText(whole.id).waitFor();
  }),
);

test(
  'a trace shows everything that was recorded',
  inBrowser(async ({ page, service, key, open }) => {
    const trace = await recordOne(service, key, {
      model: 'claude-x',
      input: 'Why is the sky\nblue?',
      output: 'Because.',
      prompt_tokens: 1_234_567,
      completion_tokens: 89,
      latency_ms: 98_765,
      cost_usd: 0.123_456_789,
      feature_name: 'search',
      user_identifier: 'u-9',
      started_at: '2026-03-01T10:30:00+01:00',
    });
    await open(`#/traces/${trace.id}`);
    await page.getByRole('heading', { name: 'claude-x', level: 1 }).waitFor();
    assert.equal(await page.title(), 'claude-x · TraceTally');
    await shows(payload(page, 'Input'), trace.input ?? '');
    await shows(payload(page, 'Output'), trace.output ?? '');
    const numbers: [string, number][] = [
      ['Cost', 0.123_456_789],
      ['Latency', 98_765],
      ['Tokens in', 1_234_567],
      ['Tokens out', 89],
    ];
    for (const [name, value] of numbers)
      assert.equal(await exactNumber(fact(page, name)), value, name);
    assert.equal(await fact(page, 'Feature').innerText(), 'search');
    assert.equal(await fact(page, 'User').innerText(), 'u-9');
    assert.ok((await fact(page, 'ID').innerText()).includes(trace.id));
    const time = fact(page, 'Recorded').getByRole('time');
    assert.equal(await time.getAttribute('datetime'), trace.created_at);
    const started = fact(page, 'Started').getByRole('time');
    assert.equal(await started.getAttribute('datetime'), '2026-03-01T09:30:00.000000Z');
    await page.getByRole('main').getByText('Success', { exact: true }).waitFor();
    assert.equal(await payload(page, 'Error').count(), 0);
  }),
);

test(
  'an error message is shown in full, and missing values differ from empty ones and from zero',
  inBrowser(async ({ page, service, key, open }) => {
    const message = `429: slow down\n${'  at line\n'.repeat(30)}end`;
    const trace = await recordOne(service, key, {
      error_message: message,
      input: '',
      latency_ms: 0,
      cost_usd: 0,
    });
    await open(`#/traces/${trace.id}`);
    await page.getByRole('main').getByText('Error', { exact: true }).first().waitFor();
    await shows(payload(page, 'Error'), message);
    await payload(page, 'Input').getByText('Empty.').waitFor();
    await payload(page, 'Output').getByText('Not recorded.').waitFor();
    assert.equal(await exactNumber(fact(page, 'Latency')), 0);
    assert.equal(await exactNumber(fact(page, 'Cost')), 0);
    assert.equal(await exactNumber(fact(page, 'Tokens in')), null);
  }),
);

test(
  'JSON is indented, with every digit and key as recorded, and the raw text is one click away',
  inBrowser(async ({ page, service, key, open }) => {
    const input = '{"b":12345678901234567890,"a":[1.10,{"c":"x, {y}: \\"z\\""},[],{}],"b":null}';
    const trace = await recordOne(service, key, { input, output: '{"broken": ' });
    await open(`#/traces/${trace.id}`);
    const place = payload(page, 'Input');
    await place.waitFor();
    await shows(
      place,
      [
        '{',
        '  "b": 12345678901234567890,',
        '  "a": [',
        '    1.10,',
        '    {',
        '      "c": "x, {y}: \\"z\\""',
        '    },',
        '    [],',
        '    {}',
        '  ],',
        '  "b": null',
        '}',
      ].join('\n'),
    );
    await showAs(place, 'Raw');
    await shows(place, input);
    // Broken JSON stays as it is.
    await shows(payload(page, 'Output'), '{"broken": ');
  }),
);

test(
  'a conversation is shown message by message',
  inBrowser(async ({ page, service, key, open }) => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'What is this?' }] },
      { role: 'assistant', content: null, tool_calls: [{ id: 'call-1' }] },
      // As OpenTelemetry has it.
      { role: 'user', parts: [{ type: 'text', content: 'And that?' }] },
    ];
    const trace = await recordOne(service, key, { input: JSON.stringify(messages) });
    await open(`#/traces/${trace.id}`);
    const place = payload(page, 'Input');
    await place.getByRole('listitem').first().waitFor();
    const items = await place.getByRole('listitem').allInnerTexts();
    const words = items.map((item) => item.replaceAll(/\s+/g, ' ').trim().toLowerCase());
    assert.deepEqual(words.slice(0, 2), ['system be brief.', 'user what is this?']);
    assert.match(words[2] ?? '', /^assistant tool_calls .*call-1/);
    assert.equal(words[3], 'user and that?');
    await showAs(place, 'JSON');
    await shows(place, JSON.stringify(messages, null, 2));
  }),
);

test(
  'the copy buttons copy exactly what was recorded',
  inBrowser(
    async ({ page, service, key, open }) => {
      const trace = await recordOne(service, key, {
        input: '{"a":  1.10}',
        output: 'tab\tand “quotes” 🦉',
        error_message: 'failed',
      });
      await open(`#/traces/${trace.id}`);
      const copies: [string | RegExp, string][] = [
        ['Copy input', '{"a":  1.10}'],
        ['Copy output', 'tab\tand “quotes” 🦉'],
        ['Copy error', 'failed'],
        ['Copy the ID', trace.id],
        [/^Copy .*JSON/, JSON.stringify(trace, null, 2)],
      ];
      for (const [name, text] of copies) {
        await page.getByRole('button', { name }).click();
        await eventually(async () =>
          assert.equal(
            await page.evaluate(() => navigator.clipboard.readText()),
            text,
            String(name),
          ),
        );
      }
      await page.getByRole('status').getByText('Copied').first().waitFor();
    },
    { permissions: ['clipboard-read', 'clipboard-write'] },
  ),
);

test(
  'the copy buttons work without clipboard access',
  inBrowser(async ({ page, service, key, open }) => {
    const trace = await recordOne(service, key, { input: 'to be copied' });
    await page.addInitScript(() =>
      Object.defineProperty(navigator, 'clipboard', { value: undefined }),
    );
    await page.addInitScript(() =>
      document.addEventListener('copy', () => {
        document.title = `copied ${getSelection()?.toString()}`;
      }),
    );
    await open(`#/traces/${trace.id}`);
    await page.getByRole('button', { name: 'Copy input' }).click();
    await eventually(async () => assert.equal(await page.title(), 'copied to be copied'));
  }),
);

test(
  'a shared link asks for a key and then opens the trace',
  inBrowser(async ({ page, home, service, key }) => {
    const trace = await recordOne(service, key, { input: 'shared question' });
    await page.goto(`${home}#/traces/${trace.id}`);
    await page.getByLabel('API key').fill(key);
    await page.getByLabel('API key').press('Enter');
    await payload(page, 'Input').getByText('shared question').waitFor();
    assert.equal(page.url(), `${home}#/traces/${trace.id}`);
    await page.reload();
    await payload(page, 'Input').getByText('shared question').waitFor();
  }),
);

test(
  'an unknown id, an id of another team and an invalid id show "Trace not found" with a link to the list',
  inBrowser(async ({ page, service, key, open, go }) => {
    await recordOne(service, key);
    const stranger = await service.keyFor();
    const foreign = await recordOne(service, stranger.key, { input: 'not yours' });
    await open();
    for (const id of ['01a1dd01-91a6-7000-8153-31dd505c229b', foreign.id, 'nonsense']) {
      await go(`#/traces/${id}`);
      const alert = page.getByRole('alert').filter({ hasText: id });
      await alert.getByText('Trace not found').waitFor();
      assert.doesNotMatch(await page.content(), /not yours/);
    }
    await page.getByRole('link', { name: 'See all traces' }).click();
    await page.getByRole('table').waitFor();
  }),
);

test(
  'an id made of dots and slashes reaches no other part of the API',
  inBrowser(async ({ page, home, service, key, open, go, watch }) => {
    await recordOne(service, key);
    // Not on the overview: what it asks for must not count.
    await open('#/traces');
    await page.getByRole('table').waitFor();
    for (const id of ['..', '.', '..%2Fanalytics%2Foverview', '%2e%2e', '..%5C..', '%00', '%']) {
      const since = watch.requests.length;
      await go(`#/traces/${id}`);
      await page.getByRole('alert').getByText('Trace not found').waitFor();
      // The pulse goes on meanwhile.
      const others = watch.apiCalls(home, since).filter((path) => path !== 'analytics/overview');
      for (const path of others) assert.match(path, /^traces\/[^/?]+$/);
      await go('#/traces');
      await page.getByRole('table').waitFor();
    }
  }),
);
