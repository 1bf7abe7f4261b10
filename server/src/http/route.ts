import type { Clock } from '../core/clock.ts';
import type { Admission } from '../ingest/admission.ts';
import type { SignInDirectory } from '../store/sign-in.ts';
import type { Probe } from '../store/store.ts';
import type { TraceReader } from '../store/trace-reader.ts';
import type { App } from './app-type.ts';
import type { Gate } from './auth.ts';
import type { BodyBudget } from './body-budget.ts';
import type { Page } from './dashboard/assets.ts';
import type { ReplyBudget } from './reply-budget.ts';

/** What routes are given. Each takes what it needs of this, and nothing else. */
export interface RouteDeps {
  reader: TraceReader;
  writes: Admission;
  signIns: SignInDirectory;
  probe: Probe;
  clock: Clock;
  gate: Gate;
  /** For routes that take a body. */
  bodyBudget: BodyBudget;
  /** For routes whose replies may be large. */
  replyBudget: ReplyBudget;
  /** The largest trace, as JSON. */
  bodyBytesMax: number;
  basePath: string;
  /** The dashboard; null if it was not built. */
  page: Page | null;
  isStopping(): boolean;
}

/** One endpoint: adds itself to the app. */
export type Route = (app: App, deps: RouteDeps) => void;
