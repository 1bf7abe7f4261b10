import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { packPayloads, unpackPayloads } from '../../src/store/payload.ts';

/** The largest metadata that is accepted. Each character takes six bytes in JSON. */
const metadata = Object.fromEntries(
  Array.from({ length: limits.metadataEntriesMax }, (_, i) => [
    `${i}`.padEnd(limits.metadataNameCharsMax, '"'),
    '\u0000'.repeat(limits.metadataValueCharsMax),
  ]),
);

test('a preview shortens texts, but never metadata', () => {
  const texts = { input: 'asked', output: 'answered', error_message: 'failed' };
  const draft = draftTrace({ model: 'm', ...texts, metadata });
  const unpacked = unpackPayloads({ ...packPayloads(draft), checksum: null }, 3);
  assert.deepEqual(
    [unpacked.input, unpacked.output, unpacked.error_message],
    ['ask', 'ans', 'fai'],
  );
  assert.deepEqual(JSON.parse(unpacked.metadata ?? ''), metadata);
});

test('the part of a payload that is read for a preview holds all of the metadata', () => {
  const { metadata: bytes } = packPayloads(draftTrace({ model: 'm', metadata }));
  assert.ok(bytes !== null && bytes.length <= limits.previewStoredBytes);
  assert.ok(Buffer.byteLength(JSON.stringify(metadata)) <= limits.previewStoredBytes);
});
