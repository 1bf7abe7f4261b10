import type { Rates, UnitPrice } from './rates.ts';

/** The prices that an operator can set, in pico-dollars per token: dollars per million tokens with up to six decimals. */
export interface OwnRates {
  input: number;
  output: number;
  cacheRead: number | null;
  cacheWrite: number | null;
  reasoning: number | null;
}

/** What an operator has said about a model. There is at most one entry for a team, model and day. */
export interface PriceEntry {
  /** Every change gives the entry a number that is higher than all others. */
  no: number;
  /** Null for all teams. */
  teamId: string | null;
  model: string;
  /** The first day (UTC) on which it applies, as days since 1970. */
  fromDay: number;
  /** Null if the price was removed. */
  rates: OwnRates | null;
  setAtUs: number;
  /** The user of the operating system. */
  setBy: string;
}

export interface OwnPrice extends PriceEntry {
  rates: OwnRates;
}

/** For prices without a first day. */
export const sinceEver = 0;

const usPerDay = 86_400_000_000;

/** Those that were not removed. */
export function livePrices(entries: readonly PriceEntry[]): OwnPrice[] {
  return entries.filter((entry): entry is OwnPrice => entry.rates !== null);
}

interface Dated {
  price: OwnPrice;
  rates: Rates;
}

/** Finds the price that applies to a call. The price of the team wins over that of all teams, even if it is older. */
export class OwnPrices {
  /** By team and model; the latest day first. */
  readonly #byName = new Map<string, Dated[]>();

  constructor(entries: readonly PriceEntry[]) {
    for (const price of livePrices(entries)) {
      const name = nameOf(price.teamId, price.model);
      let dated = this.#byName.get(name);
      if (!dated) this.#byName.set(name, (dated = []));
      dated.push({ price, rates: ratesOf(price.rates) });
    }
    for (const dated of this.#byName.values())
      dated.sort((a, b) => b.price.fromDay - a.price.fromDay);
  }

  get isEmpty(): boolean {
    return this.#byName.size === 0;
  }

  find(teamId: string | null, model: string, us: number): Dated | null {
    const day = Math.floor(us / usPerDay);
    const ofTeam = teamId === null ? null : this.#at(nameOf(teamId, model), day);
    return ofTeam ?? this.#at(nameOf(null, model), day);
  }

  #at(name: string, day: number): Dated | null {
    return this.#byName.get(name)?.find(({ price }) => price.fromDay <= day) ?? null;
  }
}

function nameOf(teamId: string | null, model: string): string {
  return `${teamId ?? ''}\u0000${model}`;
}

function ratesOf(own: OwnRates): Rates {
  const rate = (picos: number) => ({ base: unitPrice(picos), tiers: [] });
  return {
    tokens: {
      input: rate(own.input),
      output: rate(own.output),
      ...(own.cacheRead !== null && { cacheRead: rate(own.cacheRead) }),
      ...(own.cacheWrite !== null && { cacheWrite: rate(own.cacheWrite) }),
      ...(own.reasoning !== null && { reasoning: rate(own.reasoning) }),
    },
    request: 0n,
  };
}

function unitPrice(picos: number): UnitPrice {
  return BigInt(picos) * 1_000_000n;
}
