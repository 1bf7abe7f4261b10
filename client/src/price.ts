import type { TraceInput } from './api-types.ts';
import { TraceTallyError } from './errors.ts';
import { openPriceList } from './prices/price-list.ts';
import type { PricePackage } from './prices/price-list.ts';
import { areConsistent, costInPicos, dollarsOf } from './prices/rates.ts';
import type { TokenCounts } from './prices/rates.ts';
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
  /** Included in the output tokens. */
  reasoning_tokens?: number | undefined;
}

/** The provider of the call: by its URL if the price list knows it, otherwise by its name. */
export interface Seller {
  name?: string | undefined;
  url?: string | undefined;
}

/** Bound of the cache of prices, and of that of provider URLs. */
const keptMax = 1_000;

type PriceList =
  | { kind: 'unasked' }
  | { kind: 'loading'; loaded: Promise<void> }
  | { kind: 'missing' }
  | {
      kind: 'loaded';
      costOf: (
        counts: TokenCounts,
        models: readonly string[],
        seller: Seller,
      ) => number | undefined;
    };

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
    counts: TokenCounts,
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
function countsOf(usage: Usage | undefined): TokenCounts | undefined {
  if (usage?.input_tokens === undefined && usage?.output_tokens === undefined) return undefined;
  return {
    input: usage.input_tokens,
    output: usage.output_tokens,
    cacheRead: usage.cache_read_tokens,
    cacheWrite: usage.cache_write_tokens,
    cacheWrite1h: usage.cache_write_1h_tokens,
    inputAudio: usage.input_audio_tokens,
    outputAudio: usage.output_audio_tokens,
    reasoning: usage.reasoning_tokens,
  };
}

/** The same prices and the same arithmetic as on the server. */
function costsBy(found: PricePackage) {
  const list = openPriceList(found, keptMax);
  const priceOf = (model: string, { name, url }: Seller) => {
    const nowUs = Date.now() * 1000;
    const byUrl = url === undefined ? null : list.providerAt(url);
    const price = byUrl === null ? null : list.find(byUrl, model, nowUs);
    return price ?? list.find(name ?? null, model, nowUs);
  };

  return (counts: TokenCounts, models: readonly string[], seller: Seller): number | undefined => {
    if (!areConsistent(counts))
      throw new Error('the parts of a token count are more than the count');
    for (const model of models) {
      const price = priceOf(model, seller);
      const picos = price && costInPicos(price.rates, counts);
      if (picos !== null) return cleanUsd(dollarsOf(picos));
    }
    return undefined;
  };
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
