import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differenceOf, shareWords } from '../src/view/difference.ts';
import type { Better, Difference } from '../src/view/difference.ts';

test('a difference says how much, and whether it is good', () => {
  const cases: [number | null, number | null, Better, Difference | null][] = [
    [110, 100, 'less', { direction: 'up', tone: 'bad', amount: 10, share: 0.1 }],
    [90, 100, 'less', { direction: 'down', tone: 'good', amount: 10, share: 0.1 }],
    [99.5, 98, 'more', { direction: 'up', tone: 'good', amount: 1.5, share: 1.5 / 98 }],
    [98, 99.5, 'more', { direction: 'down', tone: 'bad', amount: 1.5, share: 1.5 / 99.5 }],
    [110, 100, 'neither', { direction: 'up', tone: 'neutral', amount: 10, share: 0.1 }],
    [0.3, 0.1 + 0.2, 'less', { direction: 'same', tone: 'neutral', amount: 0, share: 0 }],
    [5, 0, 'less', { direction: 'up', tone: 'bad', amount: 5, share: null }],
    [null, 5, 'less', null],
    [5, null, 'less', null],
  ];
  for (const [now, before, better, difference] of cases)
    assert.deepEqual(differenceOf(now, before, better), difference, `${now} after ${before}`);
});

test('a share is short, and never 0%', () => {
  const cases: [number, string][] = [
    [0.0001, '<1%'],
    [0.0149, '1%'],
    [0.5, '50%'],
    [2, '200%'],
    [11, '×12'],
  ];
  for (const [share, words] of cases) assert.equal(shareWords(share), words);
});
