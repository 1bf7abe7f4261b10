import type { TraceInput } from './api-types.ts';
import type { Recorder } from './recorder.ts';
import { cleanUsd } from './wrap-text.ts';

/** Token counts of a call, named as the price list names them. What was cached is part of the input. */
export interface Usage {
  input_tokens?: number | undefined;
  output_tokens?: number | undefined;
  cache_read_tokens?: number | undefined;
  cache_write_tokens?: number | undefined;
  cache_write_1h_tokens?: number | undefined;
  input_audio_tokens?: number | undefined;
  output_audio_tokens?: number | undefined;
}

/** Who sold the call: the address counts where the price list knows it, else the name. */
export interface Seller {
  name?: string | undefined;
  url?: string | undefined;
}

/** Addresses that are remembered. */
const sellersMax = 1_000;

/** What is used of the package `@pydantic/genai-prices`. */
interface PricePackage {
  calcPrice(
    usage: Record<string, number>,
    model: string,
    options?: { providerId: string },
  ): { total_price: number } | null;
  findProvider(options: { providerApiUrl: string }): { id: string } | undefined;
}

type PriceList =
  | { kind: 'unasked' }
  | { kind: 'loading'; loaded: Promise<void> }
  | { kind: 'missing' }
  | {
      kind: 'loaded';
      costOf: (usage: Counts, model: string, seller: Seller) => number | undefined;
    };

type Counts = Record<string, number>;

export interface Pricer {
  /** Begins to load the price list, which takes some 50 ms of work once. Wrapping a client does, so that it is not in the first call's way. */
  load(): void;
  /** Resolves when no trace waits for the price list any more. */
  settled(): Promise<void>;
  /** Hands the trace on, with its cost where the caller gave none and the price is known; else without one, never with 0. */
  priced(recorder: Recorder, trace: TraceInput, usage: Usage | undefined, seller: Seller): void;
}

/** With a price list of its own, which is loaded at most once. */
export function createPricer(importList: () => Promise<unknown>): Pricer {
  let list: PriceList = { kind: 'unasked' };

  async function open(): Promise<void> {
    // The package is optional: without it, traces carry the cost that the caller gives, or none.
    const found = await importList().catch(() => undefined);
    list = isPricePackage(found) ? { kind: 'loaded', costOf: costsBy(found) } : { kind: 'missing' };
  }

  function load(): void {
    if (list.kind === 'unasked') list = { kind: 'loading', loaded: open() };
  }

  function priced(
    recorder: Recorder,
    trace: TraceInput,
    usage: Usage | undefined,
    seller: Seller,
  ): void {
    const counts = countsOf(usage);
    if (typeof trace.cost_usd === 'number' || counts === undefined) {
      recorder.enqueue(trace);
      return;
    }
    load();
    if (list.kind === 'loading') {
      list.loaded
        .then(() => priced(recorder, trace, usage, seller))
        .catch((error: unknown) => recorder.report(error));
      return;
    }
    recorder.enqueue(withCost(recorder, trace, counts, seller));
  }

  function withCost(
    recorder: Recorder,
    trace: TraceInput,
    counts: Counts,
    seller: Seller,
  ): TraceInput {
    if (list.kind !== 'loaded') return trace;
    try {
      const cost = list.costOf(counts, trace.model, seller);
      return cost === undefined ? trace : { ...trace, cost_usd: cost };
    } catch (error) {
      recorder.report(error);
      return trace;
    }
  }

  return {
    load,
    priced,
    settled: async () => {
      if (list.kind === 'loading') await list.loaded;
    },
  };
}

function isPricePackage(found: unknown): found is PricePackage {
  const { calcPrice, findProvider } = (found ?? {}) as Partial<PricePackage>;
  return typeof calcPrice === 'function' && typeof findProvider === 'function';
}

/** Undefined where nothing was counted: no tokens known is not the same as no tokens used. */
function countsOf(usage: Usage | undefined): Counts | undefined {
  if (usage?.input_tokens === undefined && usage?.output_tokens === undefined) return undefined;
  const counts: Counts = {};
  for (const [name, count] of Object.entries(usage)) {
    if (typeof count === 'number' && count > 0) counts[name] = count;
  }
  return counts;
}

/** Finding the seller by its address is most of the work, and the same for every call. */
function costsBy({ calcPrice, findProvider }: PricePackage) {
  const sellers = new Map<string, string | null>();

  function idOf(url: string): string | null {
    const known = sellers.get(url);
    if (known !== undefined) return known;
    const id = findProvider({ providerApiUrl: url })?.id ?? null;
    if (sellers.size >= sellersMax) sellers.clear();
    sellers.set(url, id);
    return id;
  }

  return (usage: Counts, model: string, { name, url }: Seller): number | undefined => {
    const byUrl = url === undefined ? null : idOf(url);
    const found =
      (byUrl === null ? null : calcPrice(usage, model, { providerId: byUrl })) ??
      (name === undefined
        ? calcPrice(usage, model)
        : calcPrice(usage, model, { providerId: name }));
    return roundedUsd(found?.total_price);
  };
}

/** The service sums costs exactly to 12 decimals; what float arithmetic adds behind them is noise. */
function roundedUsd(price: number | undefined): number | undefined {
  const usd = cleanUsd(price);
  return usd === undefined ? undefined : Number(usd.toFixed(12));
}

const shared = createPricer(async () => {
  // Named in the import and caught around it: bundlers then pack the list where it is installed, and pass over it where not.
  try {
    return await import('@pydantic/genai-prices');
  } catch {
    return undefined;
  }
});

export const loadPrices: Pricer['load'] = shared.load;
export const pricesSettled: Pricer['settled'] = shared.settled;
export const priced: Pricer['priced'] = shared.priced;
