/** The part of the client that the dashboard uses: reads and their errors, without recording, which keeps the page small. */
export type * from './api-types.ts';
export { mayPass } from './backoff.ts';
export { TraceTallyError, errorOfReply } from './errors.ts';
export { AnalyticsReads, TraceReads } from './reads.ts';
export type {
  AnalyticsOptions,
  FindOptions,
  GroupField,
  GroupOptions,
  ListOptions,
  QueryOptions,
  ReadOptions,
} from './reads.ts';
export { fits } from './reply-check.ts';
export type { Shape } from './reply-check.ts';
export { readSettings } from './settings.ts';
export { Transport, serialise } from './transport.ts';
