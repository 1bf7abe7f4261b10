import type { TraceInput } from './api-types.ts';

/** What a wrapper needs of the client: a place to put a trace, and one to put what went wrong. Neither ever throws. */
export interface Recorder {
  enqueue(trace: TraceInput): void;
  report(error: unknown): void;
}

/** What a call belongs to, for the analytics. */
export interface Labels {
  feature?: string | undefined;
  user?: string | undefined;
}
