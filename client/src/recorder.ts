import type { TraceInput } from './api-types.ts';
import type { Reporter } from './reporter.ts';

/** What a wrapper needs from the client. Its methods never throw. */
export interface Recorder extends Reporter {
  enqueue(trace: TraceInput): void;
}

/** Labels of a call, for the analytics. */
export interface Labels {
  feature?: string | undefined;
  user?: string | undefined;
}
