import { candidates } from './price-aliases.ts';
import type { Candidate } from './price-aliases.ts';
import { perMillionTokens, perThousandRequests } from './rates.ts';
import type { Rate, Rates, TokenKind, UnitPrice } from './rates.ts';

/** The part of the package `@pydantic/genai-prices` that is used. Its prices are used, but not its arithmetic. */
export interface PricePackage {
  calcPrice(
    usage: Record<string, number>,
    model: string,
    options: { providerId?: string; timestamp: Date },
  ): Listing | null;
  findProvider(options: {
    providerId?: string;
    providerApiUrl?: string;
  }): { id: string } | undefined;
}

type ListedPrice = number | { base: number; tiers: { start: number; price: number }[] } | undefined;

interface Listing {
  provider: { id: string };
  model: { id: string; prices: unknown };
  model_price: Record<string, ListedPrice>;
}

/** A price of the list. */
export interface ListPrice {
  /** What the list calls them. */
  provider: string;
  model: string;
  /** The first day (UTC) on which it applies; null if the list has no earlier price. */
  from: string | null;
  rates: Rates;
}

/** What was looked for, and whether it was found. */
export interface Attempt extends Candidate {
  found: ListPrice | null;
}

export interface PriceList {
  /** The price of a model when a call began, in microseconds since 1970; null if the list has none. */
  find(provider: string | null, model: string, us: number): ListPrice | null;
  /** What `find` looks for, in order, up to what it finds. Empty if the provider has no prices. */
  attempts(provider: string | null, model: string, us: number): Attempt[];
  /** The name of the provider with this address. */
  providerAt(url: string): string | null;
}

const usPerSecond = 1_000_000;
const secondsPerDay = 86_400;
const lateDaysMax = 3;
const usPerDay = secondsPerDay * usPerSecond;

/** The prices of one day, each with the second of the day until which it applies. Most models have one price all day. */
type Day = readonly { untilSecond: number; price: ListPrice | null }[];

/** The prices of one of the last days, which most calls are of: two short lookups instead of a new name for each call. */
class LateDay {
  readonly day: number;
  readonly #byProvider = new Map<string | null, Map<string, Day>>();
  readonly #keptMax: number;
  #kept = 0;

  constructor(day: number, keptMax: number) {
    this.day = day;
    this.#keptMax = keptMax;
  }

  get(provider: string | null, model: string): Day | undefined {
    return this.#byProvider.get(provider)?.get(model);
  }

  keep(provider: string | null, model: string, prices: Day): void {
    if (this.#kept++ >= this.#keptMax) {
      this.#byProvider.clear();
      this.#kept = 1;
    }
    let models = this.#byProvider.get(provider);
    if (!models) this.#byProvider.set(provider, (models = new Map()));
    models.set(model, prices);
  }
}

/**
 * Looks prices up in the package. Looking for a model takes up to 0.2 ms, so the results are kept by provider, model and day. Callers
 * choose the names, so the number of results is bounded.
 */
export function openPriceList(list: PricePackage, keptMax: number): PriceList {
  const days = new RecentMap<Day>(keptMax);
  /** The latest first. Some callers have a clock that is ahead, or another time zone. */
  const late: LateDay[] = [];
  const urls = new RecentMap<string | null>(keptMax);
  const findProvider = (name: string) => list.findProvider({ providerId: name })?.id;

  function attempts(provider: string | null, model: string, us: number): Attempt[] {
    const made: Attempt[] = [];
    for (const candidate of candidates(provider, model, findProvider)) {
      const found = priceOf(lookUp(list, candidate, us));
      made.push({ ...candidate, found });
      if (found !== null) break;
    }
    return made;
  }

  function readDay(provider: string | null, model: string, dayUs: number): Day {
    const noonUs = dayUs + (secondsPerDay / 2) * usPerSecond;
    const found = attempts(provider, model, noonUs).find((attempt) => attempt.found !== null);
    if (found === undefined) return [{ untilSecond: secondsPerDay, price: null }];
    const listing = lookUp(list, found, noonUs);
    const bounds = [0, ...secondsIn(listing?.model.prices), secondsPerDay];
    return bounds.slice(1).map((untilSecond, i) => {
      const us = dayUs + (bounds[i] ?? 0) * usPerSecond;
      return { untilSecond, price: priceOf(lookUp(list, found, us)) };
    });
  }

  function keptDay(provider: string | null, model: string, day: number): Day {
    const name = `${day}\u0000${provider ?? ''}\u0000${model}`;
    return days.get(name) ?? days.set(name, readDay(provider, model, day * usPerDay));
  }

  /** Undefined if there are later ones. */
  function addLate(day: number): LateDay | undefined {
    if (late.length === lateDaysMax && day < (late.at(-1)?.day ?? -Infinity)) return undefined;
    const added = new LateDay(day, keptMax);
    late.push(added);
    late.sort((a, b) => b.day - a.day);
    late.splice(lateDaysMax);
    return added;
  }

  function pricesOf(provider: string | null, model: string, day: number): Day {
    const own = late.find((one) => one.day === day) ?? addLate(day);
    const known = own?.get(provider, model);
    if (known) return known;
    const prices = keptDay(provider, model, day);
    own?.keep(provider, model, prices);
    return prices;
  }

  return {
    attempts,
    find(provider, model, us) {
      const day = Math.floor(us / usPerDay);
      const prices = pricesOf(provider, model, day);
      const second = (us - day * usPerDay) / usPerSecond;
      for (const { untilSecond, price } of prices) if (second < untilSecond) return price;
      return null;
    },
    providerAt(url) {
      const known = urls.get(url);
      if (known !== undefined) return known;
      return urls.set(url, list.findProvider({ providerApiUrl: url })?.id ?? null);
    },
  };
}

function lookUp(list: PricePackage, { provider, model }: Candidate, us: number): Listing | null {
  const timestamp = new Date(us / 1000);
  return list.calcPrice(
    {},
    model,
    provider === null ? { timestamp } : { providerId: provider, timestamp },
  );
}

function priceOf(listing: Listing | null): ListPrice | null {
  if (listing === null) return null;
  return {
    provider: listing.provider.id,
    model: listing.model.id,
    from: startOf(listing),
    rates: ratesOf(listing.model_price),
  };
}

interface DatedPrice {
  constraint?: Record<string, unknown>;
  prices: Listing['model_price'];
}

function startOf({ model: { prices }, model_price: applied }: Listing): string | null {
  if (!Array.isArray(prices)) return null;
  const dated = (prices as DatedPrice[]).find((one) => one.prices === applied);
  const day = dated?.constraint?.['start_date'];
  return typeof day === 'string' ? day : null;
}

/** Where the price may change within a day. */
function secondsIn(prices: unknown): number[] {
  if (!Array.isArray(prices)) return [];
  const times = prices.flatMap((price: DatedPrice) => {
    const { start_time: start, end_time: end } = price.constraint ?? {};
    return typeof start === 'string' && typeof end === 'string' ? [start, end] : [];
  });
  const seconds = times.map(
    (time) => (Date.parse(`1970-01-01T${time}`) / 1000 + secondsPerDay) % secondsPerDay,
  );
  return [...new Set(seconds)].filter((second) => second > 0).sort((a, b) => a - b);
}

/** What the list calls the price of each kind. */
const priceKeys: Readonly<Record<TokenKind, string>> = {
  input: 'input_mtok',
  output: 'output_mtok',
  cacheRead: 'cache_read_mtok',
  cacheWrite: 'cache_write_mtok',
  cacheWrite1h: 'cache_write_1h_mtok',
  inputAudio: 'input_audio_mtok',
  outputAudio: 'output_audio_mtok',
  reasoning: 'output_reasoning_mtok',
};

/** By the object of the package: many names and days have the same prices. */
const knownRates = new WeakMap<Listing['model_price'], Rates>();

function ratesOf(prices: Listing['model_price']): Rates {
  const known = knownRates.get(prices);
  if (known) return known;
  const rates = readRates(prices);
  knownRates.set(prices, rates);
  return rates;
}

function readRates(prices: Listing['model_price']): Rates {
  const tokens: Partial<Record<TokenKind, Rate>> = {};
  for (const [kind, key] of Object.entries(priceKeys) as [TokenKind, string][]) {
    const price = prices[key];
    if (price !== undefined) tokens[kind] = rateOf(price);
  }
  const request: UnitPrice = perThousandRequests(Number(prices['requests_kcount'] ?? 0));
  return { tokens, request };
}

function rateOf(price: NonNullable<ListedPrice>): Rate {
  if (typeof price === 'number') return { base: perMillionTokens(price), tiers: [] };
  const tiers = price.tiers.map((tier) => ({
    above: tier.start,
    price: perMillionTokens(tier.price),
  }));
  return { base: perMillionTokens(price.base), tiers: tiers.sort((a, b) => a.above - b.above) };
}

/** Keeps at least the last half of the entries that may be kept. */
class RecentMap<T> {
  readonly #halfMax: number;
  #recent = new Map<string, T>();
  #older = new Map<string, T>();

  constructor(entriesMax: number) {
    this.#halfMax = Math.ceil(entriesMax / 2);
  }

  get(name: string): T | undefined {
    const value = this.#recent.get(name);
    if (value !== undefined) return value;
    const older = this.#older.get(name);
    if (older !== undefined) this.set(name, older);
    return older;
  }

  set(name: string, value: T): T {
    if (this.#recent.size >= this.#halfMax) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(name, value);
    return value;
  }
}
