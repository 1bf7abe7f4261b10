import type {
  AnalyticsFilter,
  DailyRecord,
  EnvironmentRecord,
  FeatureRecord,
  ListedTrace,
  ModelRecord,
  Overview,
  ProviderRecord,
  QueryParameters,
  QueryReply,
  QueryRest,
  QueryRow,
  Trace,
  TraceCost,
  TraceFilter,
  TraceList,
  TracePage,
  UserRecord,
} from './api-types.ts';
import { TraceTallyError } from './errors.ts';
import { fits } from './reply-check.ts';
import type { Shape } from './reply-check.ts';
import {
  dailyRecordShape,
  environmentRecordShape,
  featureRecordShape,
  modelRecordShape,
  overviewShape,
  providerRecordShape,
  queryReplyShape,
  traceCostShape,
  traceListShape,
  tracePageShape,
  traceShape,
  userRecordShape,
} from './reply-shapes.ts';
import type { Transport } from './transport.ts';

/** Options of every read. */
export interface ReadOptions {
  /** Aborts the request. */
  signal?: AbortSignal | undefined;
}

/** How much of each trace a list shows. */
export interface ShownOptions extends ReadOptions {
  /** Traces per page, at most 100 (20). */
  limit?: number | undefined;
  /** Fields to leave out, for smaller lists. */
  omit?: readonly ('input' | 'output' | 'error_message' | 'metadata')[] | undefined;
  /** Shortens `input`, `output` and `error_message` to this many characters, 1 to 1,000. Default: full texts. */
  previewChars?: number | undefined;
}

export interface ListOptions extends ShownOptions {
  /** Page number from 1, newest first (1). */
  page?: number | undefined;
}

export interface FindOptions extends ShownOptions {
  /** Which traces to find, for example `{ user_identifier: 'u1', status: 'error', last: '7d' }`. */
  filter: TraceFilter;
  /** The `next_cursor` of the page before. */
  cursor?: string | undefined;
}

export interface AnalyticsOptions extends ReadOptions {
  /** Which traces to count, for example `{ model: ['gpt-4o', 'gpt-4.1'], from: '2026-11-01' }`. Default: all. */
  filter?: AnalyticsFilter | undefined;
}

export interface GroupOptions extends AnalyticsOptions {
  /** Maximum number of records, up to 1,000. Default: all models and features; 100 users, environments and providers. */
  limit?: number | undefined;
}

/** A field that a question can group by. */
export type GroupField = Exclude<keyof QueryRow, keyof QueryRest>;

export interface QueryOptions extends AnalyticsOptions {
  /** One or two fields. */
  groupBy?: GroupField | readonly GroupField[] | undefined;
  /** One row per interval in the time zone of the team. */
  interval?: QueryParameters['interval'];
  /** How groups are ranked, with `-` for descending. Default: `-total_cost_usd`. */
  order?: QueryParameters['order'];
  /** Number of groups, up to 1,000; the others are added up in `other` (100). */
  limit?: number | undefined;
  /** Adds rows with zeros for intervals without calls. */
  fill?: QueryParameters['fill'];
}

/** The team's traces. The API key needs the scope `read` or `full`. */
export class TraceReads {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** One page, newest first. */
  async list({ page, ...shown }: ListOptions = {}): Promise<TracePage> {
    const path = pathOf('/traces', { page, ...shownParameters(shown) });
    return read<TracePage>(this.#transport, path, tracePageShape, shown.signal);
  }

  /**
   * One page of the traces that match, newest first. A search takes about a second at most: the page may have fewer traces than
   * `limit`, even none, although more follow. There are no more if `next_cursor` is null.
   */
  async find({ filter, cursor, ...shown }: FindOptions): Promise<TraceList> {
    // Without any filter the server would return a page of all traces.
    if (Object.values(filter).every((value) => value === undefined) && cursor === undefined) {
      throw new TypeError('traces.find needs a filter. To list all traces, use traces.list.');
    }
    const path = pathOf('/traces', { ...filter, cursor, ...shownParameters(shown) });
    return read<TraceList>(this.#transport, path, traceListShape, shown.signal);
  }

  /** All traces that match and existed at the start, newest first, or by `started_at` with that `order`. */
  async *search(
    options: Omit<FindOptions, 'cursor'>,
  ): AsyncGenerator<ListedTrace, void, undefined> {
    let cursor: string | undefined;
    do {
      const page: TraceList = await this.find({ limit: 100, ...options, cursor });
      yield* page.traces;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** One trace. Throws a TraceTallyError with the code `trace_not_found` if the team has none with this id. */
  async get(id: string, { signal }: ReadOptions = {}): Promise<Trace> {
    return read<Trace>(this.#transport, pathOfTrace(id), traceShape, signal);
  }

  /** Which prices the cost of a trace was computed with, or why it has none, and what the present prices give. Throws as `get` does. */
  async cost(id: string, { signal }: ReadOptions = {}): Promise<TraceCost> {
    return read<TraceCost>(this.#transport, `${pathOfTrace(id)}/cost`, traceCostShape, signal);
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

/** An empty id or one of dots would be the path of another route. */
function pathOfTrace(id: string): string {
  if (!/^\.{0,2}$/.test(id)) return `/traces/${encodeURIComponent(id)}`;
  const detail = 'There is no trace with this id.';
  throw new TraceTallyError({ status: 404, code: 'trace_not_found', detail });
}

/** Totals over the team's traces, always up to date. The API key needs the scope `read` or `full`. */
export class AnalyticsReads {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Totals over the team's traces. */
  async overview(options: AnalyticsOptions = {}): Promise<Overview> {
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

  /** One record per user, most calls first. Calls without a user are not included. */
  async byUser(options: GroupOptions = {}): Promise<UserRecord[]> {
    return this.#read<UserRecord[]>('by-user', [userRecordShape], options);
  }

  /** One record per environment, most calls first. Calls without an environment are not included. */
  async byEnvironment(options: GroupOptions = {}): Promise<EnvironmentRecord[]> {
    return this.#read<EnvironmentRecord[]>('by-environment', [environmentRecordShape], options);
  }

  /** One record per provider, most calls first. Calls without a provider are not included. */
  async byProvider(options: GroupOptions = {}): Promise<ProviderRecord[]> {
    return this.#read<ProviderRecord[]>('by-provider', [providerRecordShape], options);
  }

  /** The days of the range in the team's time zone, oldest first. Default: the last seven, today last. */
  async daily(options: AnalyticsOptions = {}): Promise<DailyRecord[]> {
    return this.#read<DailyRecord[]>('daily', [dailyRecordShape], options);
  }

  /** Any question: grouped by up to two fields, per interval, with tokens and percentiles. Rows and `other` are the totals. */
  async query({
    groupBy,
    interval,
    order,
    fill,
    ...options
  }: QueryOptions = {}): Promise<QueryReply> {
    const group_by = typeof groupBy === 'string' ? groupBy : groupBy?.join(',') || undefined;
    const more = { group_by, interval, order, fill };
    return this.#read<QueryReply>('query', queryReplyShape, options, more);
  }

  async #read<T>(
    name: string,
    shape: Shape<T>,
    { filter, limit, signal }: GroupOptions,
    more: Parameters = {},
  ): Promise<T> {
    const path = pathOf(`/analytics/${name}`, { ...filter, ...more, limit });
    return read(this.#transport, path, shape, signal);
  }
}

type Value = string | number | null;
type Parameters = Readonly<Record<string, unknown>>;

function shownParameters({ limit, omit, previewChars }: ShownOptions): Parameters {
  return { limit, omit: omit?.join(',') || undefined, preview_chars: previewChars };
}

/** A path with a query string. A list repeats its parameter, null is an empty value, and `metadata` has a parameter for each name. */
function pathOf(path: string, parameters: Parameters): string {
  const query = new URLSearchParams();
  const add = (name: string, values: Value | readonly Value[] | undefined): void => {
    if (values === undefined) return;
    const list = [values].flat();
    // No parameter would mean: any value.
    if (list.length === 0) throw new TypeError(`The filter ${name} has no values.`);
    for (const value of list) query.append(name, textOf(value));
  };
  for (const [name, value] of Object.entries(parameters)) {
    if (name === 'metadata') {
      for (const [own, values] of Object.entries((value ?? {}) as Record<string, Value>)) {
        add(`metadata.${own}`, values);
      }
    } else {
      add(name, value as Value | undefined);
    }
  }
  const text = query.toString();
  return text === '' ? path : `${path}?${text}`;
}

function textOf(value: Value): string {
  if (value === null) return '';
  // The server does not accept exponents.
  return typeof value === 'number' && value < 1e-6 && value > 0 ? value.toFixed(12) : String(value);
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
