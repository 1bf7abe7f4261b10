import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { conversationOf, firstMessages } from '../src/trace/chat-messages.ts';
import type { ChatMessage } from '../src/trace/chat-messages.ts';
import { indentJson, indentValue } from '../src/trace/indent-json.ts';
import { slicesOf } from '../src/trace/slices.ts';

function indented(json: string): string {
  return [...indentJson(json)].join('');
}

test('JSON is indented like JSON.stringify does, whatever white space it had', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(0, 1, '\t'), (value, space) => {
      fc.pre(typeof value === 'object' && value !== null);
      assert.equal(indented(JSON.stringify(value, null, space)), JSON.stringify(value, null, 2));
    }),
  );
});

test('indenting keeps all digits of numbers, and the order and repetition of keys', () => {
  const json = '{"b":1.10,"a":12345678901234567890,"b":-0,"c":1E+2}';
  assert.equal(indented(json).replaceAll(/\s/g, ''), json);
});

test('a parsed value is indented like JSON.stringify does', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      assert.equal([...indentValue(value)].join(''), JSON.stringify(value, null, 2));
    }),
  );
});

test('a parsed value is indented to a bounded depth, and deeper values are marked', () => {
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const) {
    const value: unknown = JSON.parse(`${open.repeat(100_000)}1${close.repeat(100_000)}`);
    const text = [...indentValue(value)].join('');
    assert.ok(text.length < 5_000, `${text.length} characters`);
    assert.match(text, /[[{] … nested deeper, see Raw [\]}]/);
  }
});

test('the first slice of a value is available before the rest is read', () => {
  const items = Array.from({ length: 100 }, () => ({}));
  let looks = 0;
  const counting = new Proxy(items, {
    get(target, name, receiver): unknown {
      if (typeof name === 'string' && /^\d+$/.test(name)) looks += 1;
      return Reflect.get(target, name, receiver);
    },
  });
  slicesOf(indentValue(counting), 20, 20).next();
  assert.ok(looks < 20, `${looks} of 100 items`);
});

test('a megabyte of brackets does not become a gigabyte of spaces', () => {
  const depth = 20_000;
  const text = indented('['.repeat(depth) + '1' + ']'.repeat(depth));
  assert.ok(text.length < 120 * depth, `${text.length} characters`);
  assert.equal(text.replaceAll(/\s/g, ''), '['.repeat(depth) + '1' + ']'.repeat(depth));
});

test('slices add up to the text, keep to the requested size, and split no character', () => {
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

test('no slice has a letter with very many combining marks, and no slice splits a character', () => {
  const musical = '\u{1d165}';
  for (const text of [
    `a${'\u0301'.repeat(20_000)}b`,
    `${'\u0301'.repeat(700)}${musical.repeat(3_001)}`,
    `${`a${'\u0301'.repeat(999)}`.repeat(20)}`,
  ]) {
    const slices = [...slicesOf([text], 4_000, 15_000)];
    assert.equal(slices.join(''), text);
    for (const slice of slices) {
      assert.ok(slice !== '' && slice.isWellFormed());
      const longest = Math.max(
        ...Array.from(slice.matchAll(/\p{M}*/gu), ([marks]) => marks.length),
      );
      assert.ok(longest <= 1_001, `${longest} marks`);
    }
  }
});

test('the first slice is available before the rest is read', () => {
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

/** All messages; null if it is not a conversation. */
function messagesOf(value: unknown): readonly ChatMessage[] | null {
  const conversation = conversationOf(value);
  return conversation === null ? null : firstMessages(conversation, 1_000).messages;
}

test('conversations of the common APIs are recognized, and nothing else is', () => {
  const text = (content: string) => [{ kind: 'text', text: content }];
  assert.deepEqual(messagesOf([{ role: 'user', content: 'hi' }]), [
    { role: 'user', parts: text('hi') },
  ]);
  assert.deepEqual(
    messagesOf({ system: 'be brief', messages: [{ role: 'user', content: 'hi' }] }),
    [
      { role: 'system', parts: text('be brief') },
      { role: 'user', parts: text('hi') },
    ],
  );
  assert.deepEqual(messagesOf({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }), [
    { role: 'user', parts: text('hi') },
  ]);
  assert.deepEqual(
    messagesOf([
      { role: 'user', content: '' },
      { type: 'function_call', name: 'f' },
    ])?.at(1),
    {
      role: 'function_call',
      parts: [{ kind: 'data', name: '', value: { type: 'function_call', name: 'f' } }],
    },
  );
  for (const value of [[], {}, [1], [{ role: 1 }], { messages: 'none' }, { role: 'x' }])
    assert.equal(messagesOf(value), null, JSON.stringify(value));
});

test('reading any JSON as a conversation never throws and loses no text of a message', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string(), (value, words) => {
      messagesOf(value);
      const [message] = messagesOf([{ role: 'user', content: words, extra: value }]) ?? [];
      assert.deepEqual(message?.parts[0], { kind: 'text', text: words });
    }),
  );
});

test('no more parts are read than requested, and the result says whether there are more', () => {
  const parts = (count: number) => Array.from({ length: count }, () => 'word');
  const cases: [contents: unknown[], partsMax: number, shown: number[], isWhole: boolean][] = [
    [[parts(5)], 5, [5], true],
    [[parts(6)], 5, [5], false],
    [[parts(3), parts(3)], 5, [3, 2], false],
    [[parts(3), parts(2)], 5, [3, 2], true],
    [[parts(5), parts(1)], 5, [5], false],
    [[[], [], []], 2, [0, 0], false],
    [[[], [], []], 3, [0, 0, 0], true],
  ];
  for (const [contents, partsMax, shown, isWhole] of cases) {
    const messages = contents.map((content) => ({ role: 'user', content }));
    const first = firstMessages(conversationOf(messages) ?? [], partsMax);
    assert.deepEqual(
      first.messages.map((message) => message.parts.length),
      shown,
    );
    assert.equal(first.isWhole, isWhole);
  }
});

test('long roles and part names are cut', () => {
  const long = 'x'.repeat(10_000);
  const messages = messagesOf([{ role: long, content: [{ type: long }], [long]: 1 }]);
  for (const { role, parts } of messages ?? []) {
    assert.equal(role, `${'x'.repeat(255)}…`);
    for (const part of parts) assert.ok(part.kind === 'data' && part.name === role);
    assert.equal(parts.length, 2);
  }
  assert.equal(messages?.length, 1);
});
