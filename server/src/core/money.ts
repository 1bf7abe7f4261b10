/**
 * Exact money. A cost arrives as a double and is taken as the shortest decimal that reads back to the same
 * double, which is what the client wrote if it has up to 15 significant digits. It is rounded half up at 12 decimals and
 * stored as two integers that can be added exactly.
 */
export interface CostParts {
  /** Whole micro-dollars. */
  micros: number;
  /** The remainder in pico-dollars, below a million. */
  picos: number;
}

const picosPerMicro = 1_000_000;

/** Splits a cost of 0 to a million dollars. Both parts are far below 2^53, so they are exact as numbers. */
export function splitCost(dollars: number): CostParts {
  return splitShort(dollars) ?? splitDigits(dollars);
}

/**
 * The usual case, without formatting a string. No two decimals of up to 15 digits read as the same double. So if an integer number of
 * pico-dollars has at most 15 digits and reads back to the cost, it is the decimal that the client wrote.
 */
function splitShort(dollars: number): CostParts | null {
  const picos = Math.round(dollars * picosPerDollar);
  if (picos >= fifteenDigits || picos / picosPerDollar !== dollars) return null;
  const micros = Math.floor(picos / picosPerMicro);
  return { micros, picos: picos - micros * picosPerMicro };
}

const picosPerDollar = 1e12;
const fifteenDigits = 1e15;

function splitDigits(dollars: number): CostParts {
  const { whole, fraction } = decimalDigits(dollars);
  const padded = fraction.padEnd(13, '0');
  let micros = Number(whole) * 1_000_000 + Number(padded.slice(0, 6));
  let picos = Number(padded.slice(6, 12)) + (padded.charCodeAt(12) >= digitFive ? 1 : 0);
  if (picos === picosPerMicro) {
    micros += 1;
    picos = 0;
  }
  return { micros, picos };
}

const digitFive = '5'.charCodeAt(0);

/** The digits before and after the decimal point. JavaScript prints numbers below 1e-6 with a negative exponent. */
function decimalDigits(value: number): { whole: string; fraction: string } {
  const [mantissa = '0', exponent] = String(value).split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  if (exponent === undefined) return { whole, fraction };
  return { whole: '0', fraction: '0'.repeat(-Number(exponent) - 1) + whole + fraction };
}

/** A sum of costs as dollars with exactly six decimals, rounded half up. */
export function formatDollars(picos: bigint): string {
  const perMicro = BigInt(picosPerMicro);
  const rounded = (picos + perMicro / 2n) / perMicro;
  const fraction = String(rounded % 1_000_000n).padStart(6, '0');
  return `${rounded / 1_000_000n}.${fraction}`;
}

/** A sum of costs as dollars with all of its decimals, up to 12, so that sums of such sums add up. */
export function formatExactDollars(picos: bigint): string {
  const perDollar = 1_000_000_000_000n;
  const fraction = String(picos % perDollar)
    .padStart(12, '0')
    .replace(/0+$/, '');
  return fraction === '' ? String(picos / perDollar) : `${picos / perDollar}.${fraction}`;
}
