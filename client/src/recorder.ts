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
  /** The conversation of the call: `session_id`. */
  session?: string | undefined;
  /** One run of an agent: `run_id`. */
  run?: string | undefined;
  /**
   * The service that runs the model, such as `openai` or `groq`; the server also finds the price by it. Default: known from the wrapped
   * client. For `measure`, the price is found by the name of the model if it is not set.
   */
  provider?: string | undefined;
}
