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

/** Options of every read. */
export interface ReadOptions {
  /** Aborts the request. */
  signal?: AbortSignal | undefined;
}

export interface ListOptions extends ReadOptions {
  /** Page number from 1, newest first (1). */
  page?: number | undefined;
  /** Traces per page, at most 100 (20). */
  limit?: number | undefined;
  /** Fields to leave out, for smaller lists. */
  omit?: readonly ('input' | 'output' | 'error_message' | 'metadata')[] | undefined;
  /** Shortens `input`, `output` and `error_message` to this many characters, 1 to 1,000. Default: full texts. */
  previewChars?: number | undefined;
}

export interface GroupOptions extends ReadOptions {
  /** Maximum number of records, up to 1,000. Default: all. */
  limit?: number | undefined;
}

/** The team's traces. The API key needs the scope `read` or `full`. */
export class TraceReads {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** One page, newest first. */
  async list({ page, limit, omit, previewChars, signal }: ListOptions = {}): Promise<TracePage> {
    const query = new URLSearchParams();
    if (page !== undefined) query.set('page', String(page));
    if (limit !== undefined) query.set('limit', String(limit));
    if (omit !== undefined && omit.length > 0) query.set('omit', omit.join(','));
    if (previewChars !== undefined) query.set('preview_chars', String(previewChars));
    const path = `/traces${query.toString() === '' ? '' : `?${query.toString()}`}`;
    return read<TracePage>(this.#transport, path, tracePageShape, signal);
  }

  /** One trace. Throws a TraceTallyError with the code `trace_not_found` if the team has none with this id. */
  async get(id: string, { signal }: ReadOptions = {}): Promise<Trace> {
    // An empty id or one of dots would be the path of another route.
    if (/^\.{0,2}$/.test(id)) throw noSuchTrace();
    const path = `/traces/${encodeURIComponent(id)}`;
    return read<Trace>(this.#transport, path, traceShape, signal);
  }

  /**
   * All traces that existed at the start, newest first, each exactly once, no matter how many arrive in the meantime.
   *
   * Each new trace moves every other one back by one position. `total` says how many arrived since the first page, and so at which
   * position the next trace is now.
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
      // If traces arrive faster than pages are read, request the page on which the next trace is expected to be.
      const number = Math.floor((done + arrived + growth) / limit) + 1;
      const page = await this.list({ ...options, limit, page: number });
      limit = page.limit;
      startTotal ??= page.total;
      growth = Math.max(0, page.total - startTotal - arrived);
      arrived = page.total - startTotal;
      // The position of the page's first trace among those that existed at the start; negative for a new one.
      const first = (number - 1) * limit - arrived;
      // Fewer traces arrived than expected, so this page would skip some.
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

/** Totals over the team's traces, always up to date. The API key needs the scope `read` or `full`. */
export class AnalyticsReads {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Totals over all of the team's traces. */
  async overview(options: ReadOptions = {}): Promise<Overview> {
    return this.#read<Overview>('overview', overviewShape, options);
  }

  /** One record per model, most calls first. */
  async byModel(options: GroupOptions = {}): Promise<ModelRecord[]> {
    return this.#read<ModelRecord[]>('by-model', [modelRecordShape], options);
  }

  /** One record per feature, most calls first. Calls without a feature are not included. */
  async byFeature(options: GroupOptions = {}): Promise<FeatureRecord[]> {
    return this.#read<FeatureRecord[]>('by-feature', [featureRecordShape], options);
  }

  /** The last seven days in the team's time zone, today last. */
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
