import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { payloadNames } from '../../src/core/trace-fields.ts';
import { limits } from '../../src/limits.ts';
import {
  damagedPayloads,
  decodePayload,
  encodePayload,
  hasPayloads,
  packPayloads,
  packedBytes,
  unpackPayloads,
  beginningOf,
} from '../../src/store/payload.ts';
import { seededRandom, shuffled } from '../support/seeded-random.ts';

const anyText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 50 }),
  fc.constantFrom('', '\u0000', 'a\u0000b', '\uFFFD', '😀'),
  fc.string({ minLength: 1, maxLength: 20 }).map((piece) => piece.repeat(500)),
);
const entries = fc.option(anyText.map((value) => JSON.stringify({ value: value.toWellFormed() })));
const payload = fc.option(anyText.map((value) => value.toWellFormed()));

test('payloads come back as they were, whichever are null, short or long', () => {
  fc.assert(
    fc.property(payload, payload, payload, entries, (input, output, error_message, metadata) => {
      const texts = { input, output, error_message, metadata };
      const packed = packPayloads(texts);
      assert.ok(packedBytes(packed) >= 0);
      assert.deepEqual(unpackPayloads(packed), texts);
    }),
  );
});

test('long text is compressed if that saves at least a tenth, and short text never is', () => {
  const long = 'the same words again '.repeat(1000);
  assert.ok(encodePayload(long).isZstd);
  assert.ok(encodePayload(long).bytes.length < long.length / 10);
  assert.equal(encodePayload('a'.repeat(limits.compressBytesMin - 1)).isZstd, false);
  const noise = Array.from({ length: 4000 }, (_, i) =>
    String.fromCharCode(33 + ((i * i * 7919) % 90)),
  );
  const stored = encodePayload(shuffled(seededRandom(1), noise).join(''));
  assert.ok(!stored.isZstd || stored.bytes.length < 0.9 * 4000);
});

test('a compressed payload with a changed byte never reads as another text', () => {
  const text = 'prompt '.repeat(400);
  const { bytes } = encodePayload(text);
  let noticed = 0;
  for (let at = 0; at < bytes.length; at++) {
    const changed = Uint8Array.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 0x10;
    const decoded = decodePayload({ bytes: changed, isZstd: true });
    // A few bits of the frame's header mean nothing.
    assert.ok(decoded === null || decoded === text, `byte ${at}`);
    if (decoded === null) noticed += 1;
  }
  assert.ok(noticed >= bytes.length - 1, `${noticed} of ${bytes.length}`);
});

const none = { input: null, output: null, error_message: null, metadata: null };

test('any change to the stored payloads of a trace makes all of them damaged', () => {
  const packed = packPayloads({ ...none, input: 'short', output: '', metadata: '{"a":"b"}' });
  const changes: Partial<typeof packed>[] = [
    { input: Buffer.from('shorT') },
    { input: Buffer.from('shor'), output: Buffer.from('t') },
    { output: null },
    { input: null },
    { error_message: Buffer.from('') },
    { zstdMask: 2 },
    { checksum: (packed.checksum ?? 0) ^ 1 },
  ];
  for (const change of changes) {
    const changed = { ...packed, ...change };
    const present = payloadNames.filter((name) => changed[name] !== null);
    assert.deepEqual(damagedPayloads(changed), present, Object.keys(change).join());
  }
  assert.deepEqual(damagedPayloads({ ...packed }), []);
});

test('a trace without payloads has no checksum', () => {
  const packed = packPayloads(none);
  assert.equal(packed.checksum, null);
  assert.equal(hasPayloads(packed), false);
  assert.equal(hasPayloads(packPayloads({ ...none, output: '' })), true);
});

test('a damaged payload without a checksum is named, is null, and leaves the others readable', () => {
  const texts = { ...none, input: 'x '.repeat(2000), output: 'fine' };
  const packed = { ...packPayloads(texts), checksum: null };
  packed.input?.fill(0, 0, 4);
  const copy = { ...packed, input: Uint8Array.from(packed.input ?? []) };
  assert.deepEqual(damagedPayloads(copy), ['input']);
  assert.deepEqual(unpackPayloads(packed), {
    input: null,
    output: 'fine',
    error_message: null,
    metadata: null,
    damaged: ['input'],
  });
});

test('bytes that are not UTF-8 are damaged', () => {
  assert.equal(decodePayload({ bytes: Uint8Array.of(0xff, 0xfe), isZstd: false }), null);
});

test('the beginning of a payload is that of its text, without half a character, even if the stored bytes are cut off', () => {
  const long = anyText.map(
    (value) => `${value.toWellFormed()}${'words and more words '.repeat(9000)}`,
  );
  fc.assert(
    fc.property(fc.oneof(anyText, long), fc.integer({ min: 1, max: 1000 }), (sent, charsMax) => {
      const whole = sent.toWellFormed();
      const { bytes, isZstd } = encodePayload(whole);
      const cut = Uint8Array.from(bytes.subarray(0, limits.previewStoredBytes));
      const expected = whole.slice(0, charsMax).replace(/[\uD800-\uDBFF]$/, '');
      assert.equal(beginningOf({ bytes: cut, isZstd }, charsMax), expected);
    }),
  );
});

test('the beginning of a damaged payload of up to 128 KiB is never another text', () => {
  const sent = 'prompt '.repeat(400);
  const { bytes } = encodePayload(sent);
  for (let at = 0; at < bytes.length; at++) {
    const changed = Uint8Array.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 0x10;
    const beginning = beginningOf({ bytes: changed, isZstd: true }, 50);
    assert.ok(beginning === null || beginning === sent.slice(0, 50), `byte ${at}: ${beginning}`);
  }
});
