import type { TraceInput } from './api-types.ts';
import type { Reporter } from './reporter.ts';

/** What a wrapper needs of the client. Its methods never throw. */
export interface Recorder extends Reporter {
  enqueue(trace: TraceInput): void;
}

/** What a call belongs to in the analytics. */
export interface Labels {
  feature?: string | undefined;
  user?: string | undefined;
}
