import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { chatMessagesOf } from '../src/trace/chat-messages.ts';
import { indentJson } from '../src/trace/indent-json.ts';
import { slicesOf } from '../src/trace/slices.ts';

function indented(json: string): string {
  return [...indentJson(json)].join('');
}

test('JSON is indented as JSON.stringify would, wherever its white space was', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(0, 1, '\t'), (value, space) => {
      fc.pre(typeof value === 'object' && value !== null);
      assert.equal(indented(JSON.stringify(value, null, space)), JSON.stringify(value, null, 2));
    }),
  );
});

test('numbers keep their digits, keys their order and their repetition', () => {
  const json = '{"b":1.10,"a":12345678901234567890,"b":-0,"c":1E+2}';
  assert.equal(indented(json).replaceAll(/\s/g, ''), json);
});

test('a megabyte of brackets becomes no gigabyte of spaces', () => {
  const depth = 20_000;
  const text = indented('['.repeat(depth) + '1' + ']'.repeat(depth));
  assert.ok(text.length < 120 * depth, `${text.length} characters`);
  assert.equal(text.replaceAll(/\s/g, ''), '['.repeat(depth) + '1' + ']'.repeat(depth));
});

test('slices add up to the text, are of the size that was asked for, and cut through no character', () => {
  const unit = fc.constantFrom('a', '\n', '🦉', 'é', '\t', '\ud800');
  fc.assert(
    fc.property(fc.array(fc.string({ unit, maxLength: 60 })), (pieces) => {
      const slices = [...slicesOf(pieces, 10, 25)];
      const text = pieces.join('');
      assert.equal(slices.join(''), text);
      assert.ok((slices[0]?.length ?? 0) <= 10);
      for (const slice of slices.slice(1)) assert.ok(slice.length <= 25 && slice.length > 0);
      if (text.isWellFormed()) for (const slice of slices) assert.ok(slice.isWellFormed());
    }),
  );
});

test('the first slice is there before the rest was looked at', () => {
  let taken = 0;
  function* endless(): Generator<string, void, undefined> {
    for (;;) {
      taken += 1;
      yield 'piece ';
    }
  }
  slicesOf(endless(), 100, 100).next();
  assert.ok(taken < 30);
});

test('conversations of the common APIs are read, and anything else is none', () => {
  const text = (content: string) => [{ kind: 'text', text: content }];
  assert.deepEqual(chatMessagesOf([{ role: 'user', content: 'hi' }]), [
    { role: 'user', parts: text('hi') },
  ]);
  assert.deepEqual(
    chatMessagesOf({ system: 'be brief', messages: [{ role: 'user', content: 'hi' }] }),
    [
      { role: 'system', parts: text('be brief') },
      { role: 'user', parts: text('hi') },
    ],
  );
  assert.deepEqual(chatMessagesOf({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }), [
    { role: 'user', parts: text('hi') },
  ]);
  for (const value of [[], {}, [1], [{ role: 1 }], { messages: 'none' }, { role: 'x' }])
    assert.equal(chatMessagesOf(value), null, JSON.stringify(value));
});

test('whatever JSON it is, reading it as a conversation never throws, and loses no text of a message', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string(), (value, words) => {
      chatMessagesOf(value);
      const [message] = chatMessagesOf([{ role: 'user', content: words, extra: value }]) ?? [];
      assert.deepEqual(message?.parts[0], { kind: 'text', text: words });
    }),
  );
});
