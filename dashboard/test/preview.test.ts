import assert from 'node:assert/strict';
import { test } from 'node:test';
import { promptPreview } from '../src/traces/preview.ts';

const conversation = JSON.stringify([
  { role: 'system', content: 'You are helpful.' },
  { role: 'user', content: 'First question' },
  { role: 'assistant', content: 'First answer' },
  { role: 'user', content: 'Second\n"question" 😀' },
]);

test('the preview of a prompt is its beginning in one line', () => {
  const table: [input: string | null | undefined, preview: string | null][] = [
    [undefined, null],
    [null, null],
    ['', null],
    [' \n ', null],
    ['Hello!', 'Hello!'],
    ['two\n\nlines\tand tabs', 'two lines and tabs'],
    ['x'.repeat(500), `${'x'.repeat(200)}…`],
    ['{not json', '{not json'],
    ['{"city":"Berlin"}', '{"city":"Berlin"}'],
  ];
  for (const [input, preview] of table) assert.equal(promptPreview(input), preview, String(input));
});

test('the preview of a conversation is what the user said last, wherever its JSON is cut off', () => {
  assert.equal(promptPreview(conversation), 'Second "question" 😀');
  const parts = [{ role: 'user', content: [{ type: 'text', text: 'Describe it' }] }];
  assert.equal(promptPreview(JSON.stringify(parts)), 'Describe it');
  for (let end = 0; end <= conversation.length; end++) {
    const preview = promptPreview(conversation.slice(0, end));
    assert.equal(preview === null, end === 0, `cut off at ${end}`);
  }
});
