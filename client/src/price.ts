import type { TraceInput } from './api-types.ts';
import { TraceTallyError } from './errors.ts';
import type { Recorder } from './recorder.ts';
import { cleanUsd } from './wrap-text.ts';

/** Token counts of a call, named as in the price list. Input tokens include cached ones. */
export interface Usage {
  input_tokens?: number | undefined;
  output_tokens?: number | undefined;
  cache_read_tokens?: number | undefined;
  cache_write_tokens?: number | undefined;
  cache_write_1h_tokens?: number | undefined;
  input_audio_tokens?: number | undefined;
  output_audio_tokens?: number | undefined;
  /** Included in the output tokens; not part of the price list. */
  reasoning_tokens?: number | undefined;
}

/** The provider of the call: by its URL if the price list knows it, otherwise by its name. */
export interface Seller {
  name?: string | undefined;
  url?: string | undefined;
}

/** Bound of the cache of provider URLs. */
const sellersMax = 1_000;

/** The part of the package `@pydantic/genai-prices` that is used. */
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
      costOf: (usage: Counts, models: readonly string[], seller: Seller) => number | undefined;
    };

type Counts = Record<string, number>;

export interface Pricer {
  /** Starts to load the price list, which takes about 50 ms. Wrapping a client does this, so that the first call is not delayed. */
  load(): void;
  /** Resolves when no trace waits for the price list. */
  settled(): Promise<void>;
  /**
   * Enqueues the trace. If it has no cost, the cost is computed from the price of the response model or, if that is unknown, of the
   * trace's model. Without a known price, the trace has no cost; it is never 0.
   */
  priced(
    recorder: Recorder,
    trace: TraceInput,
    usage: Usage | undefined,
    seller: Seller,
    responseModel?: string,
  ): void;
}

/** A pricer with its own price list, which is loaded at most once. */
export function createPricer(importList: () => Promise<unknown>): Pricer {
  let list: PriceList = { kind: 'unasked' };

  async function open(): Promise<void> {
    // The package is optional: without it, traces have only the cost that the caller gives.
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
    responseModel?: string,
  ): void {
    const counts = countsOf(usage);
    if (typeof trace.cost_usd === 'number' || counts === undefined) {
      recorder.enqueue(trace);
      return;
    }
    load();
    if (list.kind === 'loading') {
      list.loaded
        .then(() => priced(recorder, trace, usage, seller, responseModel))
        .catch((error: unknown) => recorder.report(error));
      return;
    }
    const models = responseModel === undefined ? [trace.model] : [responseModel, trace.model];
    recorder.enqueue(withCost(recorder, trace, counts, models, seller));
  }

  function withCost(
    recorder: Recorder,
    trace: TraceInput,
    counts: Counts,
    models: readonly string[],
    seller: Seller,
  ): TraceInput {
    if (list.kind !== 'loaded') {
      recorder.reportOnce(pricesMissing());
      return trace;
    }
    try {
      const cost = list.costOf(counts, models, seller);
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

function pricesMissing(): TraceTallyError {
  return new TraceTallyError({
    code: 'prices_missing',
    detail:
      'AI calls are recorded without a cost because the optional package @pydantic/genai-prices is not installed. Run "npm install @pydantic/genai-prices", or set "cost_usd" yourself.',
  });
}

function isPricePackage(found: unknown): found is PricePackage {
  const { calcPrice, findProvider } = (found ?? {}) as Partial<PricePackage>;
  return typeof calcPrice === 'function' && typeof findProvider === 'function';
}

/** Undefined if no count is known, which is not the same as no tokens. */
function countsOf(usage: Usage | undefined): Counts | undefined {
  if (usage?.input_tokens === undefined && usage?.output_tokens === undefined) return undefined;
  const counts: Counts = {};
  const { reasoning_tokens: _, ...billed } = usage;
  for (const [name, count] of Object.entries(billed)) {
    if (typeof count === 'number' && count > 0) counts[name] = count;
  }
  return counts;
}

/** Finding the provider by its URL is most of the work, so the result is cached. */
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

  function priceOf(usage: Counts, model: string, { name, url }: Seller) {
    const byUrl = url === undefined ? null : idOf(url);
    return (
      (byUrl === null ? null : calcPrice(usage, model, { providerId: byUrl })) ??
      (name === undefined ? calcPrice(usage, model) : calcPrice(usage, model, { providerId: name }))
    );
  }

  return (usage: Counts, models: readonly string[], seller: Seller): number | undefined => {
    for (const model of models) {
      const price = priceOf(usage, model, seller);
      if (price !== null) return roundedUsd(price.total_price);
    }
    return undefined;
  };
}

/** The server sums costs exactly to 12 decimals; further digits are floating-point noise. */
function roundedUsd(price: number | undefined): number | undefined {
  const usd = cleanUsd(price);
  return usd === undefined ? undefined : Number(usd.toFixed(12));
}

const shared = createPricer(async () => {
  // A literal import inside try/catch: bundlers include the package if it is installed and ignore it if not.
  try {
    return await import('@pydantic/genai-prices');
  } catch {
    return undefined;
  }
});

export const loadPrices: Pricer['load'] = shared.load;
export const pricesSettled: Pricer['settled'] = shared.settled;
export const priced: Pricer['priced'] = shared.priced;
