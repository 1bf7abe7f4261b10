import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator } from 'playwright-core';
import { assertNotBlocked, openWatched } from '../support/frames.ts';
import { openStage } from '../support/stage.ts';
import { eventually } from '../support/wait.ts';

const { inBrowser } = openStage();

/** See `assertNotBlocked`. */
const controlsMax = 20;
const megabyte = 1_000_000;

const words = 'The quick brown fox jumps over the lazy dog, and then it sleeps. ';
const prose = words.repeat(Math.ceil(megabyte / words.length)).slice(0, megabyte);
const oneWord = 'x'.repeat(megabyte);
const oneLineOfJson = JSON.stringify(
  Array.from({ length: 20_000 }, (_, id) => ({ id, name: `thing ${id}`, tags: ['a', 'b'] })),
);
const conversation = JSON.stringify(
  Array.from({ length: 2_000 }, (_, turn) => ({
    role: turn % 2 === 0 ? 'user' : 'assistant',
    content: `${turn}: ${words.repeat(7)}`,
  })),
);

function lengthShown(place: Locator): Promise<number> {
  return place.evaluate((section) =>
    [...section.querySelectorAll('[dir=auto]')].reduce(
      (sum, text) => sum + (text.textContent?.length ?? 0),
      0,
    ),
  );
}

for (const [name, input, shownChars] of [
  ['of prose', prose, prose.length],
  ['without a single space', oneWord, oneWord.length],
  ['of JSON in one line', oneLineOfJson, indented(oneLineOfJson).length],
] as const) {
  test(
    `a prompt of one megabyte ${name} never blocks the page, and can be shown and copied in full`,
    inBrowser(
      async (visit) => {
        const place = await openWatched(visit, { input });
        const more = place.getByRole('button', { name: 'Show all' });
        await more.waitFor();
        const atFirst = await lengthShown(place);
        assert.ok(atFirst > 1_000 && atFirst < 100_000, `${atFirst} characters at first`);
        await place.getByRole('button', { name: 'Copy input' }).click();
        await eventually(async () => {
          const copied = await visit.page.evaluate(() => navigator.clipboard.readText());
          assert.ok(copied === input, `${copied.length} characters`);
        });
        await more.click();
        await place.getByText('characters in total').waitFor({ state: 'detached' });
        await assertNotBlocked(visit, controlsMax);
        assert.equal(await lengthShown(place), shownChars);
      },
      { permissions: ['clipboard-read', 'clipboard-write'] },
    ),
  );
}

function indented(json: string): string {
  return JSON.stringify(JSON.parse(json), null, 2);
}

test(
  'a conversation of one megabyte never blocks the page, and can be shown in full',
  inBrowser(async (visit) => {
    const place = await openWatched(visit, { input: conversation });
    const items = place.getByRole('listitem');
    const shown = await items.count();
    assert.ok(shown >= 10 && shown <= 200, `${shown} messages at first`);
    const more = place.getByRole('button', { name: 'Show more' });
    await more.click();
    await eventually(async () => assert.ok((await items.count()) > shown));
    await place.getByRole('group').getByText('Raw').click();
    await place.getByRole('button', { name: 'Show all' }).click();
    await place.getByText('characters in total').waitFor({ state: 'detached' });
    await assertNotBlocked(visit, controlsMax);
    assert.equal(await lengthShown(place), conversation.length);
  }),
);
