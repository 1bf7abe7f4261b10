import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseUuid, uuidBytes, uuidMs, uuidText, uuidV7 } from '../../src/core/uuid.ts';

const moment = fc.integer({ min: 0, max: 4_000_000_000_000_000 });

test('an id is a UUID of version 7 that holds the millisecond of its time', () => {
  fc.assert(
    fc.property(moment, (us) => {
      const id = uuidV7(us);
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      assert.equal(uuidMs(id), Math.floor(us / 1000));
    }),
  );
});

test('ids sort as their times do, to the microsecond', () => {
  fc.assert(
    fc.property(moment, fc.integer({ min: 1, max: 5000 }), (us, step) => {
      assert.ok(uuidV7(us) < uuidV7(us + step));
    }),
  );
});

test('no two ids of one microsecond are the same', () => {
  const ids = new Set(Array.from({ length: 10_000 }, () => uuidV7(1)));
  assert.equal(ids.size, 10_000);
});

test('text and bytes of an id are converted without loss', () => {
  fc.assert(
    fc.property(fc.uuid(), (id) => {
      assert.equal(uuidText(uuidBytes(id)), id);
    }),
  );
});

test('any spelling of an id is read as lower case, and anything else is not an id', () => {
  const id = '0198c0de-0000-7000-8000-00000000beef';
  assert.equal(parseUuid(id.toUpperCase()), id);
  const wrong = [
    '',
    id.slice(1),
    `${id}0`,
    id.replaceAll('-', ''),
    `{${id}}`,
    id.replace('b', 'g'),
  ];
  for (const text of wrong) assert.equal(parseUuid(text), null, text);
});
