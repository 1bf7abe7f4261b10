import type {
  DailyRecord,
  FeatureRecord,
  ListedTrace,
  ModelRecord,
  Overview,
  Trace,
  TracePage,
} from './api-types.ts';
import { TraceTallyError } from './errors.ts';
import { fits } from './reply-check.ts';
import type { Shape } from './reply-check.ts';
import {
  dailyRecordShape,
  featureRecordShape,
  modelRecordShape,
  overviewShape,
  tracePageShape,
  traceShape,
} from './reply-shapes.ts';
import type { Transport } from './transport.ts';

/** What every read may be given. */
export interface ReadOptions {
  /** Calls the request off. */
  signal?: AbortSignal | undefined;
}

export interface ListOptions extends ReadOptions {
  /** From 1, which is the newest; 1 unless set. */
  page?: number | undefined;
  /** Traces a page, at most 100; 20 unless set. */
  limit?: number | undefined;
  /** Payloads to leave out, which makes lists small. */
  omit?: readonly ('input' | 'output' | 'error_message')[] | undefined;
}

export interface GroupOptions extends ReadOptions {
  /** At most so many records, up to 1,000; all unless set. */
  limit?: number | undefined;
}

/** The team's traces. The key needs the scope `read`. */
export class TraceReads {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** One page, newest first. */
  async list({ page, limit, omit, signal }: ListOptions = {}): Promise<TracePage> {
    const query = new URLSearchParams();
    if (page !== undefined) query.set('page', String(page));
    if (limit !== undefined) query.set('limit', String(limit));
    if (omit !== undefined && omit.length > 0) query.set('omit', omit.join(','));
    const path = `/traces${query.toString() === '' ? '' : `?${query.toString()}`}`;
    return read<TracePage>(this.#transport, path, tracePageShape, signal);
  }

  /** One trace; a TraceTallyError with the code `trace_not_found` where the team has none with this id. */
  async get(id: string, { signal }: ReadOptions = {}): Promise<Trace> {
    // A path of dots would be another place, and an empty one the list.
    if (/^\.{0,2}$/.test(id)) throw noSuchTrace();
    const path = `/traces/${encodeURIComponent(id)}`;
    return read<Trace>(this.#transport, path, traceShape, signal);
  }

  /**
   * All traces that were there when it began, newest first, each exactly once, however many arrive meanwhile.
   *
   * A new trace pushes every other one place further back. `total` tells how many came since the first page, and so where the next
   * trace is now.
   */
  async *all(
    options: Omit<ListOptions, 'page'> = {},
  ): AsyncGenerator<ListedTrace, void, undefined> {
    let limit = options.limit ?? 100;
    let startTotal: number | null = null;
    let done = 0;
    let arrived = 0;
    let growth = 0;
    let lastIds = new Set<string>();
    for (;;) {
      // Where traces arrive faster than pages are read, the page is asked for where the next trace is about to be.
      const number = Math.floor((done + arrived + growth) / limit) + 1;
      const page = await this.list({ ...options, limit, page: number });
      limit = page.limit;
      startTotal ??= page.total;
      growth = Math.max(0, page.total - startTotal - arrived);
      arrived = page.total - startTotal;
      // The place of the page's first trace among those that were there at the beginning; below 0 it is a new one.
      const first = (number - 1) * limit - arrived;
      // Fewer came than expected, and the page lies behind a gap.
      if (first > done) continue;
      const fresh = page.traces.slice(done - first);
      for (const trace of fresh) if (!lastIds.has(trace.id)) yield trace;
      if (fresh.length > 0) lastIds = new Set(fresh.map(({ id }) => id));
      done += fresh.length;
      if (done >= startTotal || page.traces.length < limit) return;
    }
  }
}

function noSuchTrace(): TraceTallyError {
  const detail = 'There is no trace with this id.';
  return new TraceTallyError({ status: 404, code: 'trace_not_found', detail });
}

/** Sums over the team's traces, always up to date. The key needs the scope `read`. */
export class AnalyticsReads {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** All calls of all time. */
  async overview(options: ReadOptions = {}): Promise<Overview> {
    return this.#read<Overview>('overview', overviewShape, options);
  }

  /** One record a model, the most used first. */
  async byModel(options: GroupOptions = {}): Promise<ModelRecord[]> {
    return this.#read<ModelRecord[]>('by-model', [modelRecordShape], options);
  }

  /** One record a feature, the most used first; calls without a feature are in none. */
  async byFeature(options: GroupOptions = {}): Promise<FeatureRecord[]> {
    return this.#read<FeatureRecord[]>('by-feature', [featureRecordShape], options);
  }

  /** The last seven days in UTC, today last. */
  async daily(options: ReadOptions = {}): Promise<DailyRecord[]> {
    return this.#read<DailyRecord[]>('daily', [dailyRecordShape], options);
  }

  async #read<T>(name: string, shape: Shape<T>, options: GroupOptions): Promise<T> {
    const { limit, signal } = options;
    const query = limit === undefined ? '' : `?limit=${encodeURIComponent(limit)}`;
    return read(this.#transport, `/analytics/${name}${query}`, shape, signal);
  }
}

function read<T>(
  transport: Transport,
  path: string,
  shape: Shape<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const isReply = (reply: unknown): reply is T => fits<T>(reply, shape);
  return transport.call({ method: 'GET', path, signal, isReply });
}
