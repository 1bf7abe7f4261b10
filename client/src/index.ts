export { TraceTally } from './client.ts';
export type { RecordOptions } from './client.ts';
export { TraceTallyError } from './errors.ts';
export type { FieldError } from './errors.ts';
export type { Measured, MeasuredAnswer, MeasuredCall, SetAnswer } from './measure.ts';
export type { TraceTallyOptions } from './options.ts';
export type {
  AnalyticsOptions,
  AnalyticsReads,
  FindOptions,
  GroupField,
  GroupOptions,
  ListOptions,
  QueryOptions,
  ReadOptions,
  ShownOptions,
  TraceReads,
} from './reads.ts';
export type { Labels } from './recorder.ts';
export type { Stats } from './sender.ts';
export type { VercelMiddleware } from './vercel-ai.ts';
export type * from './api-types.ts';
