import { scaled } from './count.ts';

const cents = new Intl.NumberFormat('en-US', {
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
});
const allDigits = new Intl.NumberFormat('en-US', {
  minimumFractionDigits: 2,
  maximumFractionDigits: 20,
});

/** `$12.345678`: all that is known. */
export function exactMoney(usd: number): string {
  return `$${allDigits.format(usd)}`;
}

/** `$0.0042`, `$0.15`, `$1,234.50`, `$12.3 K`: cents for dollars, two digits for less. */
export function shortMoney(usd: number): string {
  if (usd >= 10_000) return `$${scaled(usd)}`;
  if (usd === 0 || usd >= 0.995) return `$${cents.format(usd)}`;
  if (usd < 0.000_000_1) return '<$0.0000001';
  return `$${usd.toFixed(decimalsForTwoDigits(usd))}`;
}

function decimalsForTwoDigits(usd: number): number {
  const decimals = 1 - Math.floor(Math.log10(usd));
  // 0.00996 rounds up to 0.010, whose last digit says nothing.
  const roundsUp = Number(usd.toFixed(decimals)) >= 10 ** (2 - decimals);
  return Math.max(2, roundsUp ? decimals - 1 : decimals);
}

/** A column never shows more decimals than this. */
const columnDecimalsMax = 6;
/** Digits before and after the decimal point together, so that a column stays narrow. */
const columnDigitsMax = 9;

/**
 * Formats the costs of a table column with the same number of decimals, so that their decimal points line up: two digits of the
 * smallest cost if the column has room for them. The result is a formatter for these costs.
 */
export function columnMoney(costs: readonly (number | null)[]): (usd: number) => string {
  const decimals = columnDecimals(costs.filter((usd) => usd !== null && usd > 0) as number[]);
  const smallest = 10 ** -decimals;
  const { format } = new Intl.NumberFormat('en-US', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
  // A cost that would round to 0 is shown as less than the smallest one.
  return (usd) => (usd > 0 && usd < smallest / 2 ? `<$${format(smallest)}` : `$${format(usd)}`);
}

function columnDecimals(costs: readonly number[]): number {
  const largest = Math.max(0, ...costs);
  if (largest >= 1e6) return 0;
  const digitsBefore = largest < 1 ? 1 : Math.floor(Math.log10(largest)) + 1;
  const room = Math.min(columnDecimalsMax, columnDigitsMax - digitsBefore);
  const smallest = Math.max(10 ** -columnDecimalsMax, Math.min(1, ...costs));
  return Math.min(room, decimalsForTwoDigits(smallest));
}

/** More digits of a cost are not stored. */
export const costDecimalsMax = 12;

/** Formats costs and their sum with all digits and the same number of decimals. */
export function alignedMoney(costs: readonly number[]): (usd: number) => string {
  const { format } = new Intl.NumberFormat('en-US', {
    minimumFractionDigits: Math.max(2, ...costs.map(decimalsOf)),
    maximumFractionDigits: 20,
  });
  return (usd) => `$${format(usd)}`;
}

export function decimalsOf(usd: number): number {
  return allDigits.format(usd).split('.')[1]?.length ?? 0;
}

/** For the steps of a chart, which are round: `$0`, `$2`, `$0.50`. */
export function axisMoney(usd: number): string {
  return Number.isInteger(usd) && usd < 10_000 ? `$${usd}` : shortMoney(usd);
}

/** Rounds sums and differences to six decimals, without floating-point noise. */
export function roundToMicros(usd: number): number {
  return Math.round(usd * 1e6) / 1e6;
}
