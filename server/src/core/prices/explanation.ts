import { formatDay } from '../clock.ts';
import { sinceEver } from './own-prices.ts';
import type { PriceEntry } from './own-prices.ts';
import type { PriceList } from './price-list.ts';
import type { Lookup, PricedCall, Pricer, Quote } from './pricer.ts';
import { costParts } from './rates.ts';
import type { CostPart } from './rates.ts';

/** Why a call has the cost that it has by the present prices. */
export interface Explanation {
  call: PricedCall;
  /** Where a price was looked for, in order, up to what was found. */
  steps: readonly string[];
  quote: Quote | null;
  /** What the cost is the sum of; null if there is none. */
  parts: readonly CostPart[] | null;
  /** The cost in pico-dollars. */
  picos: bigint | null;
}

export function explainCost(pricer: Pricer, list: PriceList, call: PricedCall): Explanation {
  const steps: string[] = [];
  let quote: Quote | null = null;
  for (const lookup of pricer.lookups(call)) {
    quote = lookup.find();
    steps.push(...stepsOf(lookup, quote, call, list));
    if (quote) break;
  }
  const picos = pricer.picos(call);
  const parts = quote && picos !== null ? costParts(quote.rates, call.tokens) : null;
  return { call, steps, quote, parts, picos };
}

/** Why there is no cost. Null if there is one. */
export function reasonWithoutCost({ call, quote, picos }: Explanation) {
  if (picos !== null) return null;
  const { input = null, output = null } = call.tokens;
  if (input === null && output === null) return 'tokens_unknown';
  return quote === null ? 'price_unknown' : 'tokens_unpriced';
}

function stepsOf(
  { source, name }: Lookup,
  found: Quote | null,
  { provider, us }: PricedCall,
  list: PriceList,
): string[] {
  if (source === 'own') {
    return [`Own prices: "${name}": ${found?.source === 'own' ? ownText(found.own) : 'none'}`];
  }
  const attempts = list.attempts(provider, name, us);
  if (attempts.length === 0) {
    return [`Price list: the provider "${provider}" is not in it, so "${name}" has no price`];
  }
  return attempts.map((attempt) => {
    const seller =
      attempt.provider === null ? 'the provider that its name tells' : attempt.provider;
    const price = attempt.found && `${attempt.found.provider}, model ${attempt.found.model}`;
    return `Price list: "${attempt.model}" of ${seller}: ${price ?? 'none'}`;
  });
}

function ownText({ teamId, fromDay }: PriceEntry): string {
  const place = teamId === null ? 'for all teams' : 'for this team';
  return fromDay === sinceEver ? place : `${place}, from ${formatDay(fromDay)} on`;
}
