import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator } from 'playwright-core';
import { assertNotBlocked, openWatched } from './support/frames.ts';
import { openStage } from './support/stage.ts';
import type { Visit } from './support/stage.ts';
import { eventually } from './support/wait.ts';

const { inBrowser } = openStage();

/** See `assertNotBlocked`. Far more than it takes; without the bounds the tab crashed. */
const controlsMax = 50;
const elementsMax = 1_500;
const charsAtFirstMax = 400_000;

/** Lists in lists, as text: `[[[1]]]` is nested 3 deep. */
function nested(depth: number): string {
  return `${'['.repeat(depth)}1${']'.repeat(depth)}`;
}

function repeated(text: string, count: number): string {
  return Array.from({ length: count }, () => text).join(',');
}

const deepPart = `{"type":"tool_result","content":${nested(3_000)}}`;
const manyKeys = Array.from({ length: 100_000 }, (_, at) => `"k${at}":${at}`).join(',');
const longName = 'n'.repeat(1_000_000);

/** One for each bound: depth, parts, keys, messages and names. */
const conversations: readonly (readonly [name: string, input: string])[] = [
  ['a part nested 1,000,000 deep', `[{"role":"a","content":[{"calls":${nested(1_000_000)}}]}]`],
  ['780 deep messages', `[${repeated(`{"role":"user","content":[${deepPart}]}`, 780)}]`],
  ['500,000 parts in a message', `[{"role":"user","content":[${repeated('"word"', 500_000)}]}]`],
  [
    '100,000 keys in a message and in a part',
    `[{"role":"user","content":[{${manyKeys}}],${manyKeys}}]`,
  ],
  ['100,000 messages', `[${repeated('{"role":"user","content":""}', 100_000)}]`],
  [
    'a role and a part name of 1,000,000 characters',
    `[{"role":"${longName}","content":[{"type":"${longName}","x":1}]}]`,
  ],
];

interface Drawn {
  elements: number;
  chars: number;
}

function drawnIn(place: Locator): Promise<Drawn> {
  return place.evaluate((section) => ({
    elements: section.querySelectorAll('*').length,
    chars: section.textContent?.length ?? 0,
  }));
}

async function checkBounded(visit: Visit, place: Locator): Promise<void> {
  const { elements, chars } = await drawnIn(place);
  visit.t.diagnostic(`${elements} elements, ${chars} characters`);
  assert.ok(elements < elementsMax, `${elements} elements`);
  assert.ok(chars < charsAtFirstMax, `${chars} characters`);
  await assertNotBlocked(visit, controlsMax);
}

function showAs(place: Locator, view: 'JSON' | 'Raw'): Promise<void> {
  return place.getByRole('group').getByText(view, { exact: true }).click();
}

async function beginsWith(place: Locator, text: string): Promise<void> {
  const first = place.locator('[dir=auto]').first();
  await eventually(async () =>
    assert.ok(
      text.startsWith((await first.textContent()) || 'nothing'),
      'the recorded text is shown',
    ),
  );
}

for (const [name, input] of conversations) {
  test(
    `a conversation with ${name} is shown up to a bound, and its raw text is one click away`,
    inBrowser(async (visit) => {
      const place = await openWatched(visit, { input, output: 'the answer' });
      await place.getByRole('listitem').first().waitFor();
      await checkBounded(visit, place);
      await showAs(place, 'JSON');
      await place.getByRole('listitem').first().waitFor({ state: 'detached' });
      await checkBounded(visit, place);
      await showAs(place, 'Raw');
      await beginsWith(place, input);
      await checkBounded(visit, place);
    }),
  );
}

test(
  'a long conversation shows more parts on request, and its raw text is one click away',
  inBrowser(async (visit) => {
    const input = `[{"role":"user","content":[${repeated('"word"', 500)}]},{"role":"tool","content":"x"}]`;
    const place = await openWatched(visit, { input, output: 'the answer' });
    const parts = place.locator('[dir=auto]');
    const more = place.getByRole('button', { name: 'Show more' });
    await more.waitFor();
    const atFirst = await parts.count();
    assert.ok(atFirst >= 10 && atFirst <= 100, `${atFirst} parts at first`);
    await place.getByText('2 messages in total').waitFor();
    await more.click();
    await eventually(async () => assert.equal(await parts.count(), atFirst * 2));
    await eventually(async () => {
      if (await more.isVisible()) await more.click();
      assert.equal(await parts.count(), 501);
      assert.equal(await more.count(), 0);
    });
    await visit.page.reload();
    await place.getByRole('button', { name: 'Show raw' }).click();
    await beginsWith(place, input);
  }),
);

/** Each number becomes a line with 48 spaces before it: 280,000 characters become more than the bound of 6,000,000. */
const growing = `${'['.repeat(23)}[${repeated('1', 140_000)}]${']'.repeat(23)}`;

for (const [name, input] of [
  ['that would grow twenty-five-fold', growing],
  ['nested 500,000 deep', nested(500_000)],
] as const) {
  test(
    `JSON ${name} is formatted up to a bound, and its raw text can be shown in full`,
    inBrowser(async (visit) => {
      const place = await openWatched(visit, { input, output: 'the answer' });
      await checkBounded(visit, place);
      await place.getByRole('button', { name: 'Show all' }).click();
      const growth = place.getByRole('button', { name: 'Showing all…' });
      await growth.waitFor({ state: 'detached', timeout: 150_000 });
      const { chars } = await drawnIn(place);
      assert.ok(chars < 7_000_000, `${chars} characters of JSON`);
      // The button is below all of the text, whose layout may still move it under the mouse.
      if (chars > 5_000_000) await place.getByRole('button', { name: 'Show raw' }).press('Enter');
      else await showAs(place, 'Raw');
      await beginsWith(place, input);
      await place.getByRole('button', { name: 'Show all' }).click();
      await place.getByText('characters in total').waitFor({ state: 'detached', timeout: 150_000 });
      const shown = await place.locator('[dir=auto]').evaluate((text) => text.textContent?.length);
      assert.equal(shown, input.length);
    }),
  );
}

for (const [name, text] of [
  ['500,000 line breaks', '\n'.repeat(500_000)],
  ['300,000 combining marks on one letter', `a${'\u0301'.repeat(300_000)}`],
] as const) {
  test(
    `an input of ${name} can be shown in full`,
    inBrowser(async (visit) => {
      const place = await openWatched(visit, { input: text, output: 'the answer' });
      await checkBounded(visit, place);
      await place.getByRole('button', { name: 'Show all' }).click();
      await place.getByText('characters in total').waitFor({ state: 'detached', timeout: 150_000 });
      const shown = await place.locator('[dir=auto]').evaluate((one) => one.textContent?.length);
      assert.equal(shown, text.length);
    }),
  );
}
