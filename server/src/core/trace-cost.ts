import { compile } from './compile.ts';
import { splitCost } from './money.ts';
import type { CostParts } from './money.ts';
import type { TokenCounts } from './prices/rates.ts';
import type { PricedCall, Pricer } from './prices/pricer.ts';
import { fieldNames, traceFields } from './trace-fields.ts';
import type { NarrowTrace, TraceDraft } from './trace-fields.ts';

/** What a trace cost, and who said so. Null if that is not known; traces from before prices have a cost without a source. */
export type Cost = Pick<NarrowTrace, 'cost_usd' | 'cost_source'>;

const noCost: Cost = { cost_usd: null, cost_source: null };

/** The cost of a trace in the form in which it is added; null if it has none. */
export function costOf({ cost_usd }: Cost): CostParts | null {
  return cost_usd === null ? null : splitCost(cost_usd);
}

/** The tokens of a trace by the names that prices have. */
export const tokensOf = compile<(trace: NarrowTrace) => TokenCounts>(
  `(trace) => ({ ${fieldNames
    .flatMap((name) => {
      const kind = traceFields[name].pricedAs;
      return kind === undefined ? [] : [`${kind}: trace.${name}`];
    })
    .join(', ')} })`,
);

/** A trace of a team as a call that has a price. */
export function pricedCall(trace: NarrowTrace, teamId: string, us: number): PricedCall {
  const { provider, model, response_model: exactModel } = trace;
  return { teamId, provider, exactModel, model, us, tokens: tokensOf(trace) };
}

/** What a trace costs by the prices of its day. */
export function computedCost(pricer: Pricer, trace: NarrowTrace, teamId: string, us: number): Cost {
  return costOfDollars(pricer.dollars(pricedCall(trace, teamId, us)));
}

/** A computed cost, as it is stored. */
export function costOfDollars(dollars: number | null): Cost {
  return dollars === null ? noCost : { cost_usd: dollars, cost_source: 'computed' };
}

/** Says where the cost comes from, and computes it if the caller did not send one. */
export function priceDraft(pricer: Pricer, draft: TraceDraft, teamId: string, us: number): void {
  if (draft.cost_usd !== null) {
    draft.cost_source = 'client';
    return;
  }
  const { cost_usd, cost_source } = computedCost(pricer, draft, teamId, us);
  draft.cost_usd = cost_usd;
  draft.cost_source = cost_source;
}

/** Whether a client sent it. Traces from before prices have a cost without a source. */
export function isSentCost({ cost_usd, cost_source }: Cost): boolean {
  return cost_usd !== null && cost_source !== 'computed';
}

/** The fields of a cost. */
export const costNames = ['cost_usd', 'cost_source'] as const satisfies readonly (keyof Cost)[];

export function isSameCost(one: Cost, other: Cost): boolean {
  return one.cost_usd === other.cost_usd && one.cost_source === other.cost_source;
}
