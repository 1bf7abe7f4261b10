import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  allows,
  generateKey,
  hashKey,
  isAcceptableEnvKey,
  isWellFormedKey,
  keyPrefix,
} from '../../src/core/api-key.ts';

test('keys are tt_, 30 random characters and a checksum, and no two are alike', () => {
  const keys = Array.from({ length: 2000 }, generateKey);
  for (const key of keys) {
    assert.match(key, /^tt_[0-9A-Za-z]{36}$/);
    assert.ok(isWellFormedKey(key));
  }
  assert.equal(new Set(keys).size, keys.length);
});

test('one wrong character fails the checksum', () => {
  const key = generateKey();
  for (let i = 3; i < key.length; i++) {
    const other = key[i] === 'a' ? 'b' : 'a';
    assert.equal(isWellFormedKey(key.slice(0, i) + other + key.slice(i + 1)), false, `at ${i}`);
  }
  for (const text of [
    '',
    'tt_',
    `${key}x`,
    key.slice(0, -1),
    key.replace('tt_', 'tx_'),
    ` ${key}`,
  ]) {
    assert.equal(isWellFormedKey(text), false, text);
  }
});

test('every character and length of a key is used evenly enough', () => {
  const seen = new Set(
    Array.from({ length: 500 }, generateKey).flatMap((key) => key.slice(3, 33).split('')),
  );
  assert.equal(seen.size, 62);
});

test('the stored hash is the SHA-256 of the key, and the prefix gives away six characters', () => {
  assert.equal(hashKey('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  assert.equal(keyPrefix('tt_abcdefghij'), 'tt_abcdef');
});

test('a scope allows what it says', () => {
  const table = [
    ['full', 'ingest', true],
    ['full', 'read', true],
    ['ingest', 'ingest', true],
    ['ingest', 'read', false],
    ['read', 'read', true],
    ['read', 'ingest', false],
  ] as const;
  for (const [scope, permission, expected] of table)
    assert.equal(allows(scope, permission), expected);
});

test('a key from the environment is 20 to 200 visible characters', () => {
  const table: [string, boolean][] = [
    ['x'.repeat(19), false],
    ['x'.repeat(20), true],
    ['x'.repeat(200), true],
    ['x'.repeat(201), false],
    [`${'x'.repeat(20)} `, false],
    ['ä'.repeat(20), false],
    ['!"#$%&()*+,-./:;<=>?@', true],
  ];
  for (const [key, expected] of table) assert.equal(isAcceptableEnvKey(key), expected, key);
});
