import type { Clock } from '../core/clock.ts';
import { explainCost } from '../core/prices/explanation.ts';
import type { Explanation } from '../core/prices/explanation.ts';
import { loadPriceList } from '../core/prices/load-price-list.ts';
import { OwnPrices } from '../core/prices/own-prices.ts';
import type { PriceEntry } from '../core/prices/own-prices.ts';
import { openPricer } from '../core/prices/pricer.ts';
import type { PricedCall, Pricer } from '../core/prices/pricer.ts';
import { startOfCall } from '../core/rollup.ts';
import { priceDraft } from '../core/trace-cost.ts';
import type { TraceDraft } from '../core/trace-fields.ts';
import { limits } from '../limits.ts';
import type { PriceDirectory } from '../store/price-directory.ts';

interface OwnList {
  no: number;
  entries: readonly PriceEntry[];
}

/** Computes the costs of calls that were reported without one, before they are stored. */
export interface Pricing {
  /** Loads the price list, so that the first call does not wait for it. */
  load(): Promise<void>;
  /** The prices that operators have set, for threads that price calls themselves. */
  ownPrices(): Promise<OwnList>;
  /** Sets the cost of a draft, if there is a price, and says where it comes from. Null if nothing has to be awaited. */
  price(teamId: string, draft: TraceDraft): Promise<void> | null;
  /** What a call costs now, and why. */
  explain(call: PricedCall): Promise<Explanation>;
}

/** Prices with those that operators have set. What they change is seen within a second. */
export function openPricing(prices: PriceDirectory, clock: Clock): Pricing {
  let own: OwnList | null = null;
  let pricer: { no: number; of: Pricer } | null = null;
  let isFresh = false;
  let checking: Promise<OwnList> | null = null;

  async function check(): Promise<OwnList> {
    const startedMs = performance.now();
    const no = await prices.lastPriceNo();
    if (own?.no !== no) own = { no, entries: await prices.priceEntries() };
    // A timer, since asking for the time with each call would cost as much as its price.
    const freshMs = limits.ownPricesTtlMs - (performance.now() - startedMs);
    isFresh = freshMs > 0;
    if (isFresh) setTimeout(() => (isFresh = false), freshMs).unref();
    return own;
  }

  /** All that wait share one look into the store. */
  function current(): OwnList | Promise<OwnList> {
    if (own !== null && isFresh) return own;
    return (checking ??= check().finally(() => (checking = null)));
  }

  async function pricerOf({ no, entries }: OwnList): Promise<Pricer> {
    if (pricer?.no !== no) {
      pricer = { no, of: openPricer(new OwnPrices(entries), await loadPriceList()) };
    }
    return pricer.of;
  }

  function priceNow(by: Pricer, teamId: string, draft: TraceDraft): void {
    priceDraft(by, draft, teamId, startOfCall(draft, clock()));
  }

  return {
    async load() {
      await pricerOf(await current());
    },
    async ownPrices() {
      return current();
    },
    async explain(call) {
      return explainCost(await pricerOf(await current()), await loadPriceList(), call);
    },
    price(teamId, draft) {
      const found = current();
      if (!(found instanceof Promise) && pricer?.no === found.no) {
        priceNow(pricer.of, teamId, draft);
        return null;
      }
      return Promise.resolve(found)
        .then(pricerOf)
        .then((by) => priceNow(by, teamId, draft));
    },
  };
}
