import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shortBytes } from '../src/format/bytes.ts';
import { exactCount, shortCount } from '../src/format/count.ts';
import { exactDuration, shortDuration } from '../src/format/duration.ts';
import { relativeTime } from '../src/format/moment.ts';
import { columnMoney, exactMoney, roundToMicros, shortMoney } from '../src/format/money.ts';
import { percent, shortPercent } from '../src/format/percent.ts';

function table<T>(name: string, format: (value: T) => string, rows: readonly [T, string][]): void {
  test(name, () => {
    for (const [value, words] of rows) assert.equal(format(value), words, String(value));
  });
}

table('counts are in full up to 100,000, then three digits and a unit', shortCount, [
  [0, '0'],
  [999, '999'],
  [99_999, '99,999'],
  [100_000, '100 K'],
  [123_456, '123 K'],
  [999_949, '1 M'],
  [1_234_567, '1.23 M'],
  [2_147_483_647, '2.15 B'],
  [9.007e15, '9,007 T'],
]);

table('exact counts have all their digits', exactCount, [
  [1_234_567, '1,234,567'],
  [Number.MAX_SAFE_INTEGER, '9,007,199,254,740,991'],
]);

table('money is short with cents, or with two digits below a dollar', shortMoney, [
  [0, '$0.00'],
  [0.000_000_01, '<$0.0000001'],
  [0.000_001_5, '$0.0000015'],
  [0.004_2, '$0.0042'],
  [0.009_96, '$0.010'],
  [0.154_9, '$0.15'],
  [0.994, '$0.99'],
  [0.999, '$1.00'],
  [1234.5, '$1,234.50'],
  [12_345.67, '$12.3 K'],
]);

table('exact money has all that is known, and at least cents', exactMoney, [
  [0, '$0.00'],
  [0.1, '$0.10'],
  [12.345_678, '$12.345678'],
  [0.000_000_001, '$0.000000001'],
  [999_999.999_999, '$999,999.999999'],
]);

test('the costs of a column have the same number of decimals, enough for the smallest if there is room', () => {
  const columns: [costs: (number | null)[], shown: string[]][] = [
    [[], []],
    [[null, 0], ['$0.00']],
    [
      [1234.5, 0.15, 20],
      ['$1,234.50', '$0.15', '$20.00'],
    ],
    [
      [0.004_2, 760.75, null],
      ['$0.0042', '$760.7500'],
    ],
    [
      [0.000_000_001, 0.000_015, 1],
      ['<$0.000001', '$0.000015', '$1.000000'],
    ],
    [
      [123_456.789, 0.000_015],
      ['$123,456.789', '<$0.001'],
    ],
    [
      [2_500_000, 12.5, 0.2],
      ['$2,500,000', '$13', '<$1'],
    ],
    [[1e-300], ['<$0.000001']],
  ];
  for (const [costs, shown] of columns) {
    const format = columnMoney(costs);
    assert.deepEqual(costs.filter((usd) => usd !== null).map(format), shown);
  }
});

table('sizes are in bytes, KB or MB', shortBytes, [
  [0, '0 B'],
  [999, '999 B'],
  [34_100, '34 KB'],
  [999_499, '999 KB'],
  [999_500, '1.0 MB'],
  [12_345_678, '12.3 MB'],
]);

test('sums of amounts with six decimals have no dust', () => {
  assert.equal(roundToMicros(0.1 + 0.2), 0.3);
  assert.equal(roundToMicros(1.000_001 - 1), 0.000_001);
});

table('durations use the largest units that tell enough', shortDuration, [
  [0, '0 ms'],
  [999, '999 ms'],
  [1_240, '1.24 s'],
  [9_994, '9.99 s'],
  [9_999, '10.0 s'],
  [59_949, '59.9 s'],
  [59_999, '1 min'],
  [125_000, '2 min 5 s'],
  [3_599_600, '1 h'],
  [3_900_000, '1 h 5 min'],
]);

table('exact durations are milliseconds', exactDuration, [[98_765, '98,765 ms']]);

table('rates keep two decimals', percent, [
  [100, '100%'],
  [98.63, '98.63%'],
  [0, '0%'],
]);

table('only all of it is 100%, and only nothing is 0%', shortPercent, [
  [0, '0%'],
  [0.000_1, '<1%'],
  [0.125, '13%'],
  [0.999, '99%'],
  [1, '100%'],
]);

test('ages are told in the largest unit, then as a date; a clock behind the server shows no negative age', () => {
  // At noon, wherever this runs.
  const nowMs = new Date(2026, 10, 15, 12).getTime();
  const ages: [ageMs: number, words: string][] = [
    [-60_000, 'just now'],
    [4_999, 'just now'],
    [5_000, '5 s ago'],
    [59_999, '59 s ago'],
    [60_000, '1 min ago'],
    [3_600_000, '1 h ago'],
    [86_400_000, '1 d ago'],
    [6.9 * 86_400_000, '6 d ago'],
    [8 * 86_400_000, 'Nov 7'],
    [400 * 86_400_000, 'Oct 11, 2025'],
  ];
  for (const [ageMs, words] of ages) assert.equal(relativeTime(nowMs - ageMs, nowMs), words);
});
