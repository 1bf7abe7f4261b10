import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../core/clock.ts';
import { explainCost } from '../core/prices/explanation.ts';
import type { Explanation } from '../core/prices/explanation.ts';
import { loadPriceList } from '../core/prices/load-price-list.ts';
import { OwnPrices } from '../core/prices/own-prices.ts';
import { openPricer } from '../core/prices/pricer.ts';
import type { PricedCall, Pricer } from '../core/prices/pricer.ts';
import { startOfCall } from '../core/rollup.ts';
import { priceDraft } from '../core/trace-cost.ts';
import type { TraceDraft } from '../core/trace-fields.ts';
import { limits } from '../limits.ts';
import type { PriceDirectory } from '../store/price-directory.ts';

/** Computes the costs of calls that were reported without one, before they are stored. */
export interface Pricing {
  /** Loads the price list, so that the first call does not wait for it. */
  load(): Promise<void>;
  /** Sets the cost of each draft, as far as there is a price, and says where it comes from. Null if nothing has to be awaited. */
  price(teamId: string, drafts: readonly TraceDraft[]): Promise<void> | null;
  /** What a call costs now, and why. */
  explain(call: PricedCall): Promise<Explanation>;
}

/** Prices with those that operators have set. What they change is seen within a second. */
export function openPricing(prices: PriceDirectory, clock: Clock): Pricing {
  let pricer: Pricer | null = null;
  let lastNo = -1;
  let isFresh = false;
  let checking: Promise<Pricer> | null = null;

  async function check(): Promise<Pricer> {
    const startedMs = performance.now();
    const no = await prices.lastPriceNo();
    if (pricer === null || no !== lastNo) {
      pricer = openPricer(new OwnPrices(await prices.priceEntries()), await loadPriceList());
      lastNo = no;
    }
    // A timer, since asking for the time with each call would cost as much as its price.
    const freshMs = limits.ownPricesTtlMs - (performance.now() - startedMs);
    isFresh = freshMs > 0;
    if (isFresh) setTimeout(() => (isFresh = false), freshMs).unref();
    return pricer;
  }

  /** All that wait share one look into the store. */
  function current(): Pricer | Promise<Pricer> {
    if (pricer !== null && isFresh) return pricer;
    return (checking ??= check().finally(() => (checking = null)));
  }

  return {
    async load() {
      await current();
    },
    async explain(call) {
      return explainCost(await current(), await loadPriceList(), call);
    },
    price(teamId, drafts) {
      const found = current();
      if (found instanceof Promise || drafts.length > draftsAtOnce)
        return priceInTurns(found, teamId, drafts);
      priceAll(found, teamId, drafts);
      return null;
    },
  };

  /** A name that was not seen before takes up to 0.2 ms, so other requests have their turn, too. */
  async function priceInTurns(
    found: Pricer | Promise<Pricer>,
    teamId: string,
    drafts: readonly TraceDraft[],
  ): Promise<void> {
    const own = await found;
    let turnStartMs = performance.now();
    for (let i = 0; i < drafts.length; i += draftsAtOnce) {
      if (performance.now() - turnStartMs > limits.heavyTurnMsMax) {
        await nextTurn();
        turnStartMs = performance.now();
      }
      priceAll(own, teamId, drafts.slice(i, i + draftsAtOnce));
    }
  }

  function priceAll(own: Pricer, teamId: string, drafts: readonly TraceDraft[]): void {
    const nowUs = clock();
    for (const draft of drafts) priceDraft(own, draft, teamId, startOfCall(draft, nowUs));
  }
}

const draftsAtOnce = 16;
