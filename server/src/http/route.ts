import type { Clock } from '../core/clock.ts';
import type { Admission } from '../ingest/admission.ts';
import type { Pricing } from '../ingest/pricing.ts';
import type { SignInDirectory } from '../store/sign-in.ts';
import type { Probe } from '../store/store.ts';
import type { TraceReader } from '../store/trace-reader.ts';
import type { App } from './app-type.ts';
import type { Gate } from './auth.ts';
import type { BodyBudget } from './body-budget.ts';
import type { Cursors } from './cursors.ts';
import type { Page } from './dashboard/assets.ts';
import type { FailureLog } from './failure-log.ts';
import type { ReplyBudget } from './reply-budget.ts';
import type { SignalLog } from './signal-log.ts';

/** The dependencies of routes. Each route takes only those that it needs. */
export interface RouteDeps {
  reader: TraceReader;
  writes: Admission;
  /** For calls that are reported without a cost. */
  pricing: Pricing;
  /** Whether it applies to posted traces, too. */
  priceMissingCosts: boolean;
  signIns: SignInDirectory;
  probe: Probe;
  clock: Clock;
  gate: Gate;
  cursors: Cursors;
  failures: FailureLog;
  /** For routes that accept calls in the forms of other tools. */
  signalLog: SignalLog;
  /** For routes with a request body. */
  bodyBudget: BodyBudget;
  /** For routes whose replies may be large. */
  replyBudget: ReplyBudget;
  /** The size of the largest trace as JSON. */
  bodyBytesMax: number;
  basePath: string;
  /** The dashboard; null if it was not built. */
  page: Page | null;
  isStopping(): boolean;
}

/** Adds one endpoint to the app. */
export type Route = (app: App, deps: RouteDeps) => void;
