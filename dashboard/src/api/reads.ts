import { AnalyticsReads, TraceReads, TraceTallyError } from '../../../client/src/reading.ts';
import type {
  AnalyticsFilter,
  Overview,
  QueryOptions,
  QueryReply,
  Trace,
  TraceCost,
  TraceFilter,
  TraceList,
  TracePage,
} from '../../../client/src/reading.ts';
import { openTransport } from './session-transport.ts';

/** Which traces a question is about: its range and its filters. */
export type Criteria = AnalyticsFilter;

/** A question about sums. */
export type Query = Omit<QueryOptions, 'signal'>;

/** All reads that the page makes. */
export interface Reads {
  overview(signal?: AbortSignal): Promise<Overview>;
  query(query: Query, signal?: AbortSignal): Promise<QueryReply>;
  /** Without payloads: a list of them would be far larger than what is shown. */
  tracePage(page: number, signal?: AbortSignal): Promise<TracePage>;
  /** A part of a filtered list, also without whole payloads. */
  find(filter: TraceFilter, part: ListPart, signal?: AbortSignal): Promise<TraceList>;
  trace(id: string, signal?: AbortSignal): Promise<Trace>;
  /** Where the cost of a trace comes from, or why it has none. */
  traceCost(id: string, signal?: AbortSignal): Promise<TraceCost>;
}

export interface ListPart {
  limit: number;
  /** Null for the beginning. */
  cursor: string | null;
}

export const tracesPerPage = 50;
/** How much of each prompt a list requests. */
const previewChars = 1000;

/** Models, and features, that a breakdown lists. A team may have hundreds of thousands. */
export const namesListedMax = 100;

/**
 * Uses only the part of the client that reads, which keeps the page small. `onRefused` is called for every reply that says that the
 * session, or its key, is not valid or no longer valid.
 */
export function openReads(teamId: string, onRefused: (error: TraceTallyError) => void): Reads {
  const transport = openTransport(teamId);
  const traces = new TraceReads(transport);
  const analytics = new AnalyticsReads(transport);
  const shown = { omit: ['output'], previewChars } as const;
  const watched = async <T>(answer: Promise<T>): Promise<T> => {
    try {
      return await answer;
    } catch (error) {
      if (isRefusal(error)) onRefused(error);
      throw error;
    }
  };
  return {
    overview: (signal) => watched(analytics.overview({ signal })),
    query: (query, signal) => watched(analytics.query({ ...query, signal })),
    tracePage: (page, signal) =>
      watched(traces.list({ page, limit: tracesPerPage, ...shown, signal })),
    find: (filter, { limit, cursor }, signal) =>
      watched(traces.find({ filter, limit, cursor: cursor ?? undefined, ...shown, signal })),
    trace: (id, signal) => watched(isTraceId(id) ? traces.get(id, { signal }) : missing()),
    traceCost: (id, signal) => watched(traces.cost(id, { signal })),
  };
}

/** Anything else, such as `..`, would be a different path; the server has no trace for it either. */
function isTraceId(id: string): boolean {
  return /^[0-9a-z-]{1,64}$/i.test(id);
}

function missing(): Promise<never> {
  const detail = 'There is no such trace.';
  return Promise.reject(new TraceTallyError({ status: 404, code: 'trace_not_found', detail }));
}

function isRefusal(error: unknown): error is TraceTallyError {
  return error instanceof TraceTallyError && (error.status === 401 || error.status === 403);
}
