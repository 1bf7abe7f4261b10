/**
 * What a model costs, and what a call costs by it. Prices are exact integers, so that a cost is the same however often and wherever it is
 * computed. The client has a copy of this folder (`npm run client-types`).
 */

/** The kinds of tokens that have prices of their own, each with the kind that it is part of. */
export const tokenKinds = {
  input: null,
  output: null,
  cacheRead: 'input',
  cacheWrite: 'input',
  cacheWrite1h: 'cacheWrite',
  inputAudio: 'input',
  outputAudio: 'output',
  reasoning: 'output',
} as const;

export type TokenKind = keyof typeof tokenKinds;

/** The tokens of a call. The input includes cached ones, and the output those for reasoning. Unknown counts are absent or null. */
export type TokenCounts = { readonly [K in TokenKind]?: number | null | undefined };

/** A price in millionths of a pico-dollar: per token, or per request. */
export type UnitPrice = bigint;

/** With more input tokens than `above`, its price applies to the whole call. */
interface Tier {
  above: number;
  price: UnitPrice;
}

/** The price of a kind of token. */
export interface Rate {
  base: UnitPrice;
  /** From few tokens to many. */
  tiers: readonly Tier[];
}

export interface Rates {
  /** A kind without a rate costs as much as the kind that it is part of. */
  tokens: { readonly [K in TokenKind]?: Rate };
  /** For each call. */
  request: UnitPrice;
}

/** One summand of a cost. */
export interface CostPart {
  kind: TokenKind | 'request';
  /** The number of tokens, or 1. */
  count: number;
  price: UnitPrice;
  /** The bound of the tier that the price is of, in input tokens; null if it is the base price. */
  above: number | null;
}

const kinds = Object.keys(tokenKinds) as readonly TokenKind[];
const partsOf: ReadonlyMap<TokenKind, readonly TokenKind[]> = new Map(
  kinds.map((kind) => [kind, kinds.filter((part) => tokenKinds[part] === kind)]),
);
const noParts: readonly TokenKind[] = [];
const unitsPerPico = 1_000_000n;
const picosPerDollar = 1e12;

/** A cost in pico-dollars, rounded half up. Null if the prices and counts do not say what the call costs. */
export function costInPicos(rates: Rates, counts: TokenCounts): bigint | null {
  const plain = plainCost(rates, counts);
  return plain === null ? sumOfParts(rates, counts) : BigInt(plain);
}

/** The same as a double, and for most calls without a BigInt. */
export function costInDollars(rates: Rates, counts: TokenCounts): number | null {
  const plain = plainCost(rates, counts);
  if (plain !== null) return plain / picosPerDollar;
  const picos = sumOfParts(rates, counts);
  return picos === null ? null : dollarsOf(picos);
}

function sumOfParts(rates: Rates, counts: TokenCounts): bigint | null {
  const parts = costParts(rates, counts);
  if (parts === null) return null;
  let units = 0n;
  for (const { count, price } of parts) units += BigInt(count) * price;
  return (units + unitsPerPico / 2n) / unitsPerPico;
}

/** Prices of input and output in whole pico-dollars per token that apply to every call without other kinds of tokens. */
interface PlainPrices {
  input: number;
  output: number;
  /** The input tokens up to which they apply. */
  inputMax: number;
}

const plainPrices = new WeakMap<Rates, PlainPrices | false>();

/** The same cost without a list of parts, for most calls. Null if it is not as simple as that, or too large to be exact. */
function plainCost(rates: Rates, counts: TokenCounts): number | null {
  if (
    counts.cacheRead ||
    counts.cacheWrite ||
    counts.cacheWrite1h ||
    counts.inputAudio ||
    counts.outputAudio ||
    counts.reasoning
  ) {
    return null;
  }
  const { input, output } = counts;
  if (!isCount(input) || !isCount(output)) return null;
  let prices = plainPrices.get(rates);
  if (prices === undefined) plainPrices.set(rates, (prices = plainPricesOf(rates)));
  if (prices === false || input > prices.inputMax) return null;
  const picos = input * prices.input + output * prices.output;
  return Number.isSafeInteger(picos) ? picos : null;
}

function isCount(value: number | null | undefined): value is number {
  return Number.isSafeInteger(value) && (value ?? -1) >= 0;
}

function plainPricesOf({ tokens: { input, output }, request }: Rates): PlainPrices | false {
  if (request !== 0n || input === undefined || output === undefined) return false;
  const rates = [input, output];
  const isPlain = rates.every(({ base }) => base % unitsPerPico === 0n);
  const bounds = rates.flatMap(({ tiers }) => tiers.map(({ above }) => above));
  return (
    isPlain && {
      input: Number(input.base / unitsPerPico),
      output: Number(output.base / unitsPerPico),
      inputMax: Math.min(...bounds, Infinity),
    }
  );
}

/** What a cost is the sum of. Null if some tokens have no price, or if it is not known how many tokens have which price. */
export function costParts(rates: Rates, counts: TokenCounts): CostPart[] | null {
  if (!areUsable(rates, counts)) return null;
  const inputTokens = counts.input ?? 0;
  const parts: CostPart[] = [];
  for (const kind of kinds) {
    const rate = rates.tokens[kind];
    if (rate === undefined) continue;
    const count = (counts[kind] ?? 0) - pricedWithin(kind, rates, counts);
    if (count < 0) return null;
    if (count <= 0) continue;
    const tier = tierAt(rate, inputTokens);
    parts.push({ kind, count, price: tier?.price ?? rate.base, above: tier?.above ?? null });
  }
  if (rates.request > 0n)
    parts.push({ kind: 'request', count: 1, price: rates.request, above: null });
  return parts;
}

function areUsable({ tokens }: Rates, counts: TokenCounts): boolean {
  const { input = null, output = null, cacheRead, inputAudio } = counts;
  if (input === null && output === null) return false;
  // How many of the cached tokens are audio is not known.
  if ((cacheRead ?? 0) > 0 && (inputAudio ?? 0) > 0) return false;
  if (tokens.input === undefined && tokens.output === undefined) return false;
  return kinds.every((kind) => {
    if ((counts[kind] ?? 0) === 0) return true;
    const whole = tokenKinds[kind];
    // Parts of a count that is not known, or tokens without any price.
    return whole === null ? tokens[kind] !== undefined : (counts[whole] ?? null) !== null;
  });
}

/** The tokens of a kind that have prices of their own. */
function pricedWithin(kind: TokenKind, rates: Rates, counts: TokenCounts): number {
  let sum = 0;
  for (const part of partsOf.get(kind) ?? noParts) {
    sum +=
      rates.tokens[part] === undefined ? pricedWithin(part, rates, counts) : (counts[part] ?? 0);
  }
  return sum;
}

/** Null if the base price applies. */
function tierAt({ tiers }: Rate, inputTokens: number): Tier | null {
  let last: Tier | null = null;
  for (const tier of tiers) if (inputTokens > tier.above) last = tier;
  return last;
}

/** Dollars per million tokens: one of them is a pico-dollar per token. */
export function perMillionTokens(dollars: number | string): UnitPrice {
  return decimalUnits(dollars, 12);
}

/** Dollars per thousand requests. */
export function perThousandRequests(dollars: number): UnitPrice {
  return decimalUnits(dollars, 15);
}

/** A decimal times a power of ten as an integer, rounded half up. A number is its shortest decimal. */
function decimalUnits(value: number | string, decimals: number): bigint {
  const [mantissa = '0', exponent = '0'] = String(value).split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  const digits = BigInt(whole + fraction);
  const shift = decimals - fraction.length + Number(exponent);
  if (shift >= 0) return digits * 10n ** BigInt(shift);
  const divisor = 10n ** BigInt(-shift);
  return (digits + divisor / 2n) / divisor;
}

/** A price per token as dollars per million tokens, with all of its decimals. */
export function dollarsPerMillion(price: UnitPrice): string {
  return decimalText(price, 12);
}

/** A price per request as dollars. */
export function dollarsPerRequest(price: UnitPrice): string {
  return decimalText(price, 18);
}

/** What a part costs as dollars, with all of its decimals. */
export function dollarsOfPart({ count, price }: CostPart): string {
  return decimalText(BigInt(count) * price, 18);
}

/** Pico-dollars as the double that is nearest: up to a thousand dollars it reads back to the same pico-dollars. */
export function dollarsOf(picos: bigint): number {
  // Both are exact, so the quotient is rounded once, as the decimal would be.
  if (picos <= Number.MAX_SAFE_INTEGER) return Number(picos) / picosPerDollar;
  return Number(decimalText(picos, 12));
}

function decimalText(units: bigint, decimals: number): string {
  const digits = String(units).padStart(decimals + 1, '0');
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  const whole = digits.slice(0, -decimals);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}
