import assert from 'node:assert/strict';
import { test } from 'node:test';
import { record } from './support/seed.ts';
import { openStage } from './support/stage.ts';

const { inBrowser } = openStage();

test(
  'a row shows how its prompt begins, as text, and of a conversation what the user said last',
  inBrowser(async ({ page, service, key, open }) => {
    const hostile = '<img src=x onerror=alert(1)> and more';
    const conversation = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Where is my order?' },
    ];
    await record(service, key, [
      { model: 'plain', input: hostile },
      { model: 'chat', input: JSON.stringify(conversation) },
      { model: 'silent' },
    ]);
    await open('#/traces');
    const prompts = page.locator('.row-prompt');
    await prompts.nth(1).waitFor();
    assert.deepEqual(await prompts.allTextContents(), ['Where is my order?', hostile]);
    assert.equal(await page.locator('.trace-table img').count(), 0);
  }),
);
