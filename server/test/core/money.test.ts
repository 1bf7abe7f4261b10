import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatDollars, splitCost } from '../../src/core/money.ts';
import type { CostParts } from '../../src/core/money.ts';
import { cost } from '../model/arbitraries.ts';
import { exact, roundHalfUp, sixDecimals } from '../model/exact-decimal.ts';

function sumOf(costs: readonly number[]): string {
  return formatDollars(costs.reduce((sum, dollars) => sum + picosOf(splitCost(dollars)), 0n));
}

function picosOf({ micros, picos }: CostParts): bigint {
  return BigInt(micros) * 1_000_000n + BigInt(picos);
}

test('costs add up to six exact decimals', () => {
  const table: [number[], string][] = [
    [[], '0.000000'],
    [[0], '0.000000'],
    [[0.0015], '0.001500'],
    [[0.1, 0.2], '0.300000'],
    [[0.0000004], '0.000000'],
    [[0.0000005], '0.000001'],
    [[0.000001499999], '0.000001'],
    [[0.0000014999999], '0.000002'],
    [[4.9e-13], '0.000000'],
    [Array.from({ length: 1_000_000 }, () => 5e-13), '0.000001'],
    [[999_999.999999, 0.000001], '1000000.000000'],
    [[1_000_000, 1_000_000], '2000000.000000'],
    [[5e-324], '0.000000'],
    [[0.9999999999995], '1.000000'],
  ];
  for (const [costs, shown] of table) assert.equal(sumOf(costs), shown);
});

test('100,000 costs of up to 12 decimals and 15 significant digits are right to the last digit after each one', () => {
  const anyCost = fc
    .integer({ min: 0, max: 12 })
    .chain((places) =>
      fc.tuple(fc.bigInt({ min: 0n, max: largestDigits(places) }), fc.constant(places)),
    );
  const random = fc.sample(anyCost, { numRuns: 100_000, seed: 20_261_104 });
  let picos = 0n;
  let right = 0n;
  let checked = 0;
  for (const [digits, places] of random) {
    const written = decimalText(digits, places);
    picos += picosOf(splitCost(Number(written)));
    right += exact(written);
    assert.equal(formatDollars(picos), sixDecimals(right), `after ${written}`);
    checked += 1;
  }
  assert.equal(checked, 100_000);
});

test('a cost of any double in range is the shortest decimal, rounded half up at 12 places', () => {
  fc.assert(
    fc.property(cost, (usd) => {
      const { micros, picos } = splitCost(usd);
      const stored = exact(String(micros)) / 10n ** 6n + exact(String(picos)) / 10n ** 12n;
      assert.equal(stored, roundHalfUp(exact(String(usd)), 12n));
      assert.ok(picos >= 0 && picos < 1_000_000);
    }),
    { numRuns: 20_000 },
  );
});

/** Up to a million dollars, and up to 15 digits. */
function largestDigits(places: number): bigint {
  const million = 10n ** BigInt(6 + places);
  const fifteen = 10n ** 15n - 1n;
  return million < fifteen ? million : fifteen;
}

function decimalText(digits: bigint, places: number): string {
  const text = String(digits).padStart(places + 1, '0');
  return places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`;
}
