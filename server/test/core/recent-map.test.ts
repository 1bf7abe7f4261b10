import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentMap } from '../../src/core/recent-map.ts';

test('what was used last is kept, as far as its weight allows', () => {
  const map = new RecentMap<number[]>(10, ({ length }) => length);
  const names = () => [...map].map(([name]) => name);
  const ofWeight = (weight: number) => Array.from({ length: weight }, (_, i) => i);
  const a = ofWeight(4);
  map.keep('a', a);
  map.keep('b', ofWeight(4));
  map.keep('a', a);
  map.keep('c', ofWeight(3));
  assert.deepEqual(names(), ['a', 'c']);
  // It weighs more than it did when it was kept.
  a.push(...ofWeight(5));
  map.keep('a', a);
  assert.deepEqual(names(), ['a']);
  map.keep('d', ofWeight(1));
  assert.deepEqual(names(), ['a', 'd']);
  map.forget('a');
  map.forget('a');
  map.keep('e', ofWeight(9));
  assert.deepEqual(names(), ['d', 'e']);
  map.keep('f', ofWeight(11));
  assert.deepEqual(names(), []);
  assert.equal(map.get('f'), undefined);
});
