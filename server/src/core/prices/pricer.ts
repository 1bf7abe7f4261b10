import type { OwnPrice, OwnPrices } from './own-prices.ts';
import type { ListPrice, PriceList } from './price-list.ts';
import { costInPicos } from './rates.ts';
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

/** The price that applies to a call, and for which of its names it was found. */
export type Quote = { name: string; rates: Rates } & (
  | { source: 'own'; own: OwnPrice }
  | { source: 'list'; listed: ListPrice }
);

/** Resolves prices: first those of the operator, then those of the list; first of the model that answered, then of the one asked for. */
export interface Pricer {
  quote(call: Omit<PricedCall, 'tokens'>): Quote | null;
  /** In pico-dollars. Null if there is no price, or if the tokens are not known. */
  cost(call: PricedCall): bigint | null;
}

export function openPricer(own: OwnPrices, list: PriceList, picosMax: bigint): Pricer {
  function ownQuote(teamId: string | null, name: string, us: number): Quote | null {
    const found = own.find(teamId, name, us);
    return found && { source: 'own', name, own: found.price, rates: found.rates };
  }

  function listQuote(provider: string | null, name: string, us: number): Quote | null {
    const listed = list.find(provider, name, us);
    return listed && { source: 'list', name, listed, rates: listed.rates };
  }

  function quote({ teamId, provider, exactModel, model, us }: Omit<PricedCall, 'tokens'>) {
    const exact = exactModel ?? model;
    const byOwn = own.isEmpty ? null : (ownQuote(teamId, exact, us) ?? ownQuote(teamId, model, us));
    return byOwn ?? listQuote(provider, exact, us) ?? otherName();

    function otherName(): Quote | null {
      return exact === model ? null : listQuote(provider, model, us);
    }
  }

  return {
    quote,
    cost(call) {
      const { input, output } = call.tokens;
      // Without tokens there is nothing to look for.
      if ((input ?? null) === null && (output ?? null) === null) return null;
      const found = quote(call);
      const picos = found && costInPicos(found.rates, call.tokens);
      return picos === null || picos > picosMax ? null : picos;
    },
  };
}
