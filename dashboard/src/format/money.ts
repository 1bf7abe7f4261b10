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

/** For the steps of a chart, which are round: `$0`, `$2`, `$0.50`. */
export function axisMoney(usd: number): string {
  return Number.isInteger(usd) && usd < 10_000 ? `$${usd}` : shortMoney(usd);
}

/** Sums and differences of amounts with six decimals, without the dust of binary fractions. */
export function roundToMicros(usd: number): number {
  return Math.round(usd * 1e6) / 1e6;
}
