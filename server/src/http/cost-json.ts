import { formatDay, formatTimestamp } from '../core/clock.ts';
import { reasonWithoutCost } from '../core/prices/explanation.ts';
import type { Explanation } from '../core/prices/explanation.ts';
import { sinceEver } from '../core/prices/own-prices.ts';
import type { Quote } from '../core/prices/pricer.ts';
import {
  dollarsOf,
  dollarsOfPart,
  dollarsPerMillion,
  dollarsPerRequest,
  tokenKinds,
} from '../core/prices/rates.ts';
import type { CostPart } from '../core/prices/rates.ts';
import { costNames, costOf, costOfDollars, isSameCost, isSentCost } from '../core/trace-cost.ts';
import type { Cost } from '../core/trace-cost.ts';

/** How a cost is explained in JSON: by `GET /traces/{trace_id}/cost`, and by the command `prices explain`. */

/** Why a trace has no cost. */
export const noCostReasons = [
  'tokens_unknown',
  'price_unknown',
  'tokens_unpriced',
  'pricing_off',
  'priced_later',
] as const;
type NoCostReason = (typeof noCostReasons)[number];

/** The stored cost of a trace, and what the present prices say. */
export function traceCostJson(trace: Cost, explanation: Explanation, isPricingOn: boolean): object {
  const now = costOfDollars(computedUsd(explanation));
  return {
    ...Object.fromEntries(costNames.map((name) => [name, trace[name]])),
    reason: costOf(trace) === null ? reasonOf(explanation, isPricingOn) : null,
    is_current: isSentCost(trace) || isSameCost(trace, now),
    ...explanationJson(explanation),
  };
}

/** If there is a price now, the trace was stored without looking for one, or before there was one. */
function reasonOf(explanation: Explanation, isPricingOn: boolean): NoCostReason {
  return reasonWithoutCost(explanation) ?? (isPricingOn ? 'priced_later' : 'pricing_off');
}

export function explanationJson({ call, steps, quote, parts, picos }: Explanation) {
  return {
    at: formatTimestamp(call.us),
    steps,
    ...(quote && { price: quoteJson(quote) }),
    parts: (parts ?? []).map(partJson),
    computed_usd: computedUsd({ picos }),
  };
}

function computedUsd({ picos }: Pick<Explanation, 'picos'>): number | null {
  return picos === null ? null : dollarsOf(picos);
}

function quoteJson(quote: Quote) {
  if (quote.source === 'list') {
    const { provider, model, from } = quote.listed;
    return { source: quote.source, provider, model, team_id: null, from };
  }
  const { teamId, fromDay } = quote.own;
  const from = fromDay === sinceEver ? null : formatDay(fromDay);
  return { source: quote.source, provider: null, model: quote.name, team_id: teamId, from };
}

/** With all digits of its numbers. */
function partJson(part: CostPart) {
  const { kind, count, price, above } = part;
  return {
    kind: partKind(kind),
    count,
    price_usd: JSON.rawJSON(
      kind === 'request' ? dollarsPerRequest(price) : dollarsPerMillion(price),
    ),
    above_input_tokens: above,
    usd: JSON.rawJSON(dollarsOfPart(part)),
  };
}

/** `cacheRead` as `cache_read`. */
function partKind(kind: string): string {
  return kind.replaceAll(/[A-Z0-9]+/g, (part) => `_${part.toLowerCase()}`);
}

export const partKinds: readonly string[] = [...Object.keys(tokenKinds), 'request'].map(partKind);
