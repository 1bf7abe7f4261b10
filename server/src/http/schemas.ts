import { Type } from './schema-builders.ts';
import type { TObjectOptions, TProperties, TSchema } from 'typebox';
import { breakdownFields, groupFields as groupNames } from '../core/dimensions.ts';
import { recordFields, recordNames } from '../core/record-fields.ts';
import type { RecordField } from '../core/record-fields.ts';
import { noCostReasons, partKinds } from './cost-json.ts';
import {
  ListedTraceSchema,
  TraceInputSchema,
  TraceSchema,
  costFields,
  refTo,
} from './trace-schemas.ts';

/** The schemas of requests and replies. Validation, types and the OpenAPI document are derived from them. */

/** Registered by name, so that the OpenAPI document has one component per schema. */
export const components: TSchema[] = [TraceInputSchema, TraceSchema, ListedTraceSchema];

function component(id: string, description: string, fields: TProperties, options = closed) {
  const schema = Type.Object(fields, { $id: id, description, ...options });
  components.push(schema);
  return refTo(schema);
}

const closed: TObjectOptions = { additionalProperties: false };
const fieldErrors = Type.Array(Type.Object({ field: Type.String(), message: Type.String() }));

const TracePage = component('TracePage', 'One page of traces.', {
  traces: Type.Array(refTo(ListedTraceSchema)),
  total: Type.Integer({ description: "Total number of the team's traces." }),
  page: Type.Integer(),
  limit: Type.Integer({ description: 'The page size that was used.' }),
});

const TraceList = component('TraceList', 'Traces that match a filter.', {
  traces: Type.Array(refTo(ListedTraceSchema)),
  limit: Type.Integer({ description: 'The page size that was used.' }),
  next_cursor: Type.Unsafe({
    type: ['string', 'null'],
    description: 'Send it as `cursor` to continue; null if everything was searched.',
  }),
  searched_to: Type.Unsafe({
    type: ['string', 'null'],
    description:
      'The search ends after about a second, even if the page is not full: the `created_at` of the oldest trace that it looked at. Null if everything was searched, and with `order`.',
  }),
});

const Rejection = component('Rejection', 'A trace that was not stored.', {
  index: Type.Integer({ description: 'Index of the trace in the request, starting at 0.' }),
  errors: fieldErrors,
});

const BatchReply = component('BatchReply', 'The stored and the rejected traces.', {
  traces: Type.Array(refTo(ListedTraceSchema), { description: 'The stored traces, in order.' }),
  rejected: Type.Array(Rejection),
});

const textOrNull = (description: string): TSchema =>
  Type.Unsafe({ type: ['string', 'null'], description });
const oneOf = (values: readonly string[], description: string): TSchema =>
  Type.Unsafe({ type: 'string', enum: [...values], description });

const CostPrice = component('CostPrice', 'The price that applies to a call.', {
  source: oneOf(['own', 'list'], 'A price that an operator has set, or one of the price list.'),
  provider: textOrNull('What the price list calls the provider; null for an own price.'),
  model: Type.String({
    description: 'What the price list calls the model, or the name that the own price is for.',
  }),
  team_id: textOrNull('The team if the own price is for one team; otherwise null.'),
  from: textOrNull('The first day (UTC) on which it applies; null if it has none.'),
});

const CostPart = component('CostPart', 'One summand of a cost.', {
  kind: oneOf(
    partKinds,
    'The kind of tokens. Those that have a price of their own are not counted in `input` and `output`. `request` is a price per call.',
  ),
  count: Type.Integer({ description: 'The number of tokens; 1 for `request`.' }),
  price_usd: Type.Number({
    description: 'US dollars per million tokens; for `request`, per request.',
  }),
  above_input_tokens: Type.Unsafe({
    type: ['integer', 'null'],
    description:
      'If it is the price of a tier: it applies to calls with more input tokens than this. Null for the base price.',
  }),
  usd: Type.Number({ description: 'Count times price, exactly.' }),
});

const TraceCost = component('TraceCost', 'The stored cost of a trace, and what prices give now.', {
  ...costFields,
  reason: Type.Unsafe({
    type: ['string', 'null'],
    enum: [...noCostReasons, null],
    description:
      'Why there is no cost; null if there is one. `tokens_unknown`: the trace has no token counts. `price_unknown`: the model has no price. `tokens_unpriced`: the price does not say what these tokens cost. With `pricing_off` and `priced_later` there is a price now: the trace was posted without asking for its cost, or there was no price when it was recorded.',
  }),
  is_current: Type.Boolean({
    description:
      'Whether `tracetally reprice` would leave the cost as it is. If true and the cost was computed, it is the sum of `parts`.',
  }),
  at: Type.String({ description: 'When the call began: prices depend on it. ISO 8601 in UTC.' }),
  steps: Type.Array(Type.String(), {
    description: 'Where a price was looked for, in order, up to what was found.',
  }),
  price: Type.Optional(CostPrice),
  parts: Type.Array(CostPart, {
    description: 'What `computed_usd` is the sum of. Empty if it is null.',
  }),
  computed_usd: Type.Unsafe({
    type: ['number', 'null'],
    description:
      'The cost by present prices: the sum of `parts`, rounded half up at 12 decimals. Null if there is none.',
  }),
});

const dollars = Type.Unsafe({
  type: 'number',
  description: 'Has exactly six decimals, such as `0.001500`, rounded half up from the exact sum.',
});
const latency = Type.Integer({
  description: 'Mean over the traces that have a latency, rounded half up; 0 if there are none.',
});
const rate = Type.Number({
  minimum: 0,
  maximum: 100,
  description: 'Percentage with two decimals; 0 if there are no calls.',
});
const groupFields = {
  call_count: Type.Integer(),
  avg_latency_ms: latency,
  total_cost_usd: dollars,
  success_rate: rate,
};

const Overview = component('Overview', "Totals over the team's traces.", {
  total_calls: Type.Integer(),
  avg_latency_ms: latency,
  total_cost_usd: dollars,
  success_rate: rate,
  error_count: Type.Integer(),
});

const ModelRecord = component('ModelRecord', 'Totals of one model.', {
  [breakdownFields.model]: Type.String(),
  ...groupFields,
});

const FeatureRecord = component('FeatureRecord', 'Totals of one feature.', {
  [breakdownFields.feature]: Type.String(),
  ...groupFields,
});

const UserRecord = component('UserRecord', 'Totals of one user.', {
  [breakdownFields.user]: Type.String(),
  ...groupFields,
});

const EnvironmentRecord = component('EnvironmentRecord', 'Totals of one environment.', {
  [breakdownFields.environment]: Type.String(),
  ...groupFields,
});

const ProviderRecord = component('ProviderRecord', 'Totals of one provider.', {
  [breakdownFields.provider]: Type.String(),
  ...groupFields,
});

const DailyRecord = component('DailyRecord', "Totals of one day in the team's time zone.", {
  date: Type.String({ format: 'date' }),
  label: Type.String({ examples: ['Nov 4'] }),
  call_count: Type.Integer(),
  total_cost_usd: dollars,
  avg_latency_ms: latency,
  error_count: Type.Integer(),
});

const measureKinds: Record<RecordField['kind'], TSchema> = {
  count: Type.Integer(),
  dollars: Type.Unsafe({
    type: 'number',
    description: 'The exact sum, with up to 12 decimals.',
  }),
  rate,
  latency: Type.Unsafe({
    type: ['integer', 'null'],
    description: 'Null if no trace has a latency. Percentiles are within 1 %.',
  }),
};
const measureFields = Object.fromEntries(
  recordNames.map((name) => [name, measureKinds[recordFields[name].kind]]),
);
const start = Type.Optional(
  Type.String({
    description: 'With `interval`: its beginning as local time with offset.',
    examples: ['2026-11-14T00:00:00+01:00'],
  }),
);

const QueryTotals = component('QueryTotals', 'The sums of all matching traces.', measureFields);

const QueryRow = component('QueryRow', 'The sums of one group, in one interval if there are any.', {
  start,
  ...Object.fromEntries(
    groupNames.map((name) => [name, Type.Optional(Type.Unsafe({ type: ['string', 'null'] }))]),
  ),
  ...measureFields,
});

const QueryRest = component('QueryRest', 'The sums of the groups past `limit`.', {
  start,
  ...measureFields,
});

const boundSchema = (description: string): TSchema =>
  Type.Unsafe({
    type: ['string', 'null'],
    description,
    examples: ['2026-11-01T00:00:00+01:00'],
  });

const QueryReply = component(
  'QueryReply',
  'Rows and `other` together are the totals, for every field that is a sum.',
  {
    from: boundSchema('The beginning of the range, included; null for no beginning.'),
    to: boundSchema('The end of the range, excluded; null for all time.'),
    time_zone: Type.String({ description: 'The time zone of the team.' }),
    rows: Type.Array(QueryRow, {
      description:
        'Best first; with `interval` by time, then best first. A field that is not set is null.',
    }),
    other: Type.Array(QueryRest, {
      description: 'One entry, or one per interval; empty if there are no further groups.',
    }),
    totals: QueryTotals,
  },
);

const Problem = component(
  'Problem',
  'RFC 9457 problem document.',
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.String({ description: 'Stable error code; see docs/errors.md.' }),
    request_id: Type.String({
      description: 'Also in the `x-request-id` header and in the server log.',
    }),
    errors: Type.Optional({
      ...fieldErrors,
      description: 'Only for `invalid_input`: one entry per invalid field.',
    }),
  },
  {},
);

const sorted = 'Sorted by `call_count` descending, then by name.';
const listedIfSet = (field: string): string =>
  `${sorted} Traces without \`${field}\` are not listed.`;
export const replies = {
  trace: refTo(TraceSchema),
  traceCost: TraceCost,
  traces: Type.Union([TracePage, TraceList], {
    description: 'With a filter: a `TraceList`; otherwise a `TracePage`.',
  }),
  batch: BatchReply,
  overview: Overview,
  byModel: Type.Array(ModelRecord, { description: sorted }),
  byFeature: Type.Array(FeatureRecord, { description: listedIfSet(breakdownFields.feature) }),
  byUser: Type.Array(UserRecord, { description: listedIfSet(breakdownFields.user) }),
  byEnvironment: Type.Array(EnvironmentRecord, {
    description: listedIfSet(breakdownFields.environment),
  }),
  byProvider: Type.Array(ProviderRecord, { description: listedIfSet(breakdownFields.provider) }),
  daily: Type.Array(DailyRecord, {
    description:
      "Days in the team's time zone, oldest first: seven days ending today, or those of the range. Days without calls have zeros.",
  }),
  report: QueryReply,
};

export const problem = (description: string): TSchema =>
  Type.Unsafe({
    description,
    content: { 'application/problem+json': { schema: Problem } },
  });

const failures = {
  401: problem('API key missing, unknown, expired or revoked.'),
  403: problem('The API key does not have the required scope.'),
  429: problem('Too many failed attempts, or rate limit exceeded.'),
  503: problem('Overloaded, or the store is not responding.'),
};

/** The error replies of routes that read, for the OpenAPI document. */
export const readFailures = { ...failures, 422: problem('Invalid input, or a question too wide.') };

/** The error replies of routes that record traces. */
export const writeFailures = {
  ...failures,
  400: problem('Malformed JSON, UTF-8 or compression.'),
  413: problem('Body too large.'),
  415: problem('Not application/json, or a Content-Encoding other than gzip and zstd.'),
  422: problem(
    'Invalid input, or an Idempotency-Key that was already used with a different body or path.',
  ),
  507: problem('Disk full.'),
};
