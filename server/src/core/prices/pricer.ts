import { limits } from '../../limits.ts';
import type { OwnPrice, OwnPrices } from './own-prices.ts';
import type { ListPrice, PriceList } from './price-list.ts';
import { costInDollars, costInPicos } from './rates.ts';
import type { Rates, TokenCounts } from './rates.ts';

/** A call as far as its price depends on it. */
export interface PricedCall {
  teamId: string | null;
  provider: string | null;
  /** The exact model that answered; null if it is the one that was asked for, or not known. */
  exactModel: string | null;
  model: string;
  /** When it began, in microseconds since 1970. */
  us: number;
  tokens: TokenCounts;
}

type UncountedCall = Omit<PricedCall, 'tokens'>;

/** The price that applies to a call, and for which of its names it was found. */
export type Quote = { name: string; rates: Rates } & (
  | { source: 'own'; own: OwnPrice }
  | { source: 'list'; listed: ListPrice }
);

/** One place to look for a price. */
export interface Lookup {
  source: Quote['source'];
  name: string;
  find(): Quote | null;
}

export interface Pricer {
  /** Where prices are looked for, in this order; the first one that is found applies. */
  lookups(call: UncountedCall): readonly Lookup[];
  quote(call: UncountedCall): Quote | null;
  /** In pico-dollars. Null if there is no price, or if the tokens are not known. */
  picos(call: PricedCall): bigint | null;
  /** In dollars, as it is stored. */
  dollars(call: PricedCall): number | null;
}

/** A higher cost is not stored. */
const { costUsdMax } = limits;
const costPicosMax = BigInt(costUsdMax) * 1_000_000_000_000n;

/** Prices of the operator come before those of the list, and the model that answered before the one that was asked for. */
export function openPricer(own: OwnPrices, list: PriceList): Pricer {
  function ownLookup({ teamId, us }: UncountedCall, name: string): Lookup {
    return {
      source: 'own',
      name,
      find() {
        const found = own.find(teamId, name, us);
        return found && { source: 'own', name, own: found.price, rates: found.rates };
      },
    };
  }

  function quoteOfList({ provider, us }: UncountedCall, name: string): Quote | null {
    const listed = list.find(provider, name, us);
    return listed && { source: 'list', name, listed, rates: listed.rates };
  }

  function listLookup(call: UncountedCall, name: string): Lookup {
    return { source: 'list', name, find: () => quoteOfList(call, name) };
  }

  function lookups(call: UncountedCall): readonly Lookup[] {
    const other = otherName(call);
    const names = other === null ? [call.model] : [other, call.model];
    const ofList = names.map((name) => listLookup(call, name));
    return own.isEmpty ? ofList : [...names.map((name) => ownLookup(call, name)), ...ofList];
  }

  function quote(call: UncountedCall): Quote | null {
    // Most calls have one lookup, for which no list is made.
    if (own.isEmpty && otherName(call) === null) return quoteOfList(call, call.model);
    for (const lookup of lookups(call)) {
      const found = lookup.find();
      if (found !== null) return found;
    }
    return null;
  }

  function ratesOf(call: PricedCall): Rates | null {
    const { input = null, output = null } = call.tokens;
    // Without tokens there is nothing to look for.
    if (input === null && output === null) return null;
    return quote(call)?.rates ?? null;
  }

  function picosOf(call: PricedCall): bigint | null {
    const rates = ratesOf(call);
    const picos = rates && costInPicos(rates, call.tokens);
    return picos === null || picos > costPicosMax ? null : picos;
  }

  return {
    lookups,
    quote,
    picos: picosOf,
    dollars(call) {
      const rates = ratesOf(call);
      const dollars = rates && costInDollars(rates, call.tokens);
      if (dollars === null || dollars < costUsdMax) return dollars;
      // At the limit the double may be rounded: the exact cost decides.
      return picosOf(call) === null ? null : dollars;
    },
  };
}

/** The name of the model that answered, if it is not the one that was asked for. */
function otherName({ exactModel, model }: UncountedCall): string | null {
  return exactModel === model ? null : exactModel;
}
