import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { Clock } from '../core/clock.ts';
import type { GroupCommit } from '../ingest/group-commit.ts';
import type { Store } from '../store/store.ts';
import type { Gate } from './auth.ts';
import type { Page } from './dashboard/assets.ts';
import type { BodyBudget } from './body-budget.ts';
import type { ReplyBudget } from './reply-budget.ts';

/** What routes are given. Each takes what it needs of this, and nothing else. */
export interface RouteDeps {
  store: Store;
  commits: GroupCommit;
  clock: Clock;
  gate: Gate;
  /** For routes that take a body. */
  bodyBudget: BodyBudget;
  /** For routes whose replies may be large. */
  replyBudget: ReplyBudget;
  /** The largest trace, as JSON. */
  bodyBytesMax: number;
  basePath: string;
  /** The dashboard; null where it was not built. */
  page: Page | null;
  isStopping(): boolean;
}

/** Fastify with types that come from the schemas. */
export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** One endpoint: adds itself to the app. */
export type Route = (app: App, deps: RouteDeps) => void;
