import Type from 'typebox';
import type { Static, TSchema } from 'typebox';
import { payloadNames } from '../core/trace.ts';
import type { PayloadName } from '../core/trace.ts';
import { limits } from '../limits.ts';

function refTo<T extends TSchema>(schema: T) {
  return Type.Unsafe<Static<T>>({ $ref: `${String(Reflect.get(schema, '$id'))}#` });
}

/**
 * The shapes of requests and replies. From these come validation, types and the OpenAPI document. A nullable field is a
 * list of types rather than a union, since it gives one clear error in place of three.
 */
const nullable = <T>(type: string, options: object) =>
  Type.Unsafe<T | null>({ type: [type, 'null'], ...options });

const noControlCharacters = '^[^\\u0000-\\u001f\\u007f-\\u009f]*$';
const label = { minLength: 1, maxLength: limits.labelCharsMax, pattern: noControlCharacters };
const count = { minimum: 0, maximum: limits.countMax };

const shortFields = {
  prompt_tokens: nullable<number>('integer', { ...count, description: 'Input token count.' }),
  completion_tokens: nullable<number>('integer', { ...count, description: 'Output token count.' }),
  latency_ms: nullable<number>('integer', {
    ...count,
    description: 'Response time in milliseconds.',
  }),
  cost_usd: nullable<number>('number', {
    minimum: 0,
    maximum: limits.costUsdMax,
    description: 'Cost in US dollars. Sums are exact to 12 decimals.',
  }),
  feature_name: nullable<string>('string', {
    ...label,
    description: 'Feature label used for analytics.',
  }),
  user_identifier: nullable<string>('string', {
    ...label,
    description: 'User ID used for per-user analytics.',
  }),
};
const model = Type.String({ ...label, description: 'Model name.' });
const input = nullable<string>('string', { description: "The user's prompt." });
const output = nullable<string>('string', { description: "The AI's response." });
const errorMessage = nullable<string>('string', {
  description: 'Error details if the call failed.',
});

const TraceInput = Type.Object(
  {
    model,
    input: Type.Optional(input),
    output: Type.Optional(output),
    prompt_tokens: Type.Optional(shortFields.prompt_tokens),
    completion_tokens: Type.Optional(shortFields.completion_tokens),
    latency_ms: Type.Optional(shortFields.latency_ms),
    cost_usd: Type.Optional(shortFields.cost_usd),
    status: Type.Optional(
      Type.Unsafe<'success' | 'error' | null>({
        type: ['string', 'null'],
        enum: ['success', 'error', null],
        description: 'Left out: `error` where `error_message` is not empty, else `success`.',
      }),
    ),
    error_message: Type.Optional(errorMessage),
    feature_name: Type.Optional(shortFields.feature_name),
    user_identifier: Type.Optional(shortFields.user_identifier),
  },
  {
    $id: 'TraceInput',
    description: 'Fields that are not listed here have no effect; null is the same as left out.',
  },
);

/** In the order of the reply. */
const storedFields = {
  id: Type.String({ format: 'uuid' }),
  team_id: Type.String({ format: 'uuid' }),
  model,
  input,
  output,
  prompt_tokens: shortFields.prompt_tokens,
  completion_tokens: shortFields.completion_tokens,
  latency_ms: shortFields.latency_ms,
  cost_usd: shortFields.cost_usd,
  status: Type.Unsafe<'success' | 'error'>({ type: 'string', enum: ['success', 'error'] }),
  error_message: errorMessage,
  feature_name: shortFields.feature_name,
  user_identifier: shortFields.user_identifier,
  created_at: Type.String({
    description: 'ISO 8601 in UTC with microseconds.',
    examples: ['2026-11-04T09:30:00.000001Z'],
  }),
};

const damaged = Type.Optional(
  Type.Array(Type.Unsafe<PayloadName>({ type: 'string', enum: [...payloadNames] }), {
    description:
      'Present only if stored bytes were damaged: the fields that cannot be read any more and are null here.',
  }),
);

const Trace = Type.Object(
  { ...storedFields, damaged },
  {
    $id: 'Trace',
    additionalProperties: false,
    description: 'A stored trace. Every field except `damaged` is always present.',
  },
);

const ListedTrace = Type.Object(
  {
    ...storedFields,
    input: Type.Optional(input),
    output: Type.Optional(output),
    error_message: Type.Optional(errorMessage),
    damaged,
  },
  {
    $id: 'ListedTrace',
    additionalProperties: false,
    description: 'A stored trace; `input`, `output` and `error_message` are left out on request.',
  },
);

const TracePage = Type.Object(
  {
    traces: Type.Array(refTo(ListedTrace)),
    total: Type.Integer({ description: "Number of all of the team's traces." }),
    page: Type.Integer(),
    limit: Type.Integer({ description: 'The page size that was used.' }),
  },
  { $id: 'TracePage', additionalProperties: false },
);

const Rejection = Type.Object(
  {
    index: Type.Integer({ description: 'Its place in the request, from 0.' }),
    errors: Type.Array(Type.Object({ field: Type.String(), message: Type.String() })),
  },
  { $id: 'Rejection', additionalProperties: false, description: 'A trace that was not stored.' },
);

const BatchReply = Type.Object(
  {
    traces: Type.Array(refTo(ListedTrace), { description: 'What was stored, in order.' }),
    rejected: Type.Array(refTo(Rejection)),
  },
  { $id: 'BatchReply', additionalProperties: false },
);

/** Each item is checked by itself, so that an invalid one does not spoil the rest. */
export const BatchBody = Type.Object({
  traces: Type.Unsafe<readonly unknown[]>({
    type: 'array',
    minItems: 1,
    maxItems: limits.batchTracesMax,
    openapi: { items: refTo(TraceInput) },
  }),
});

const dollars = Type.Unsafe<RawJSON>({
  type: 'number',
  description:
    'Written with exactly six decimals, such as `0.001500`; rounded half up from the exact sum.',
});
const latency = Type.Integer({
  description: 'Mean over the traces that carry `latency_ms`, rounded half up; 0 where none does.',
});
const rate = Type.Number({
  minimum: 0,
  maximum: 100,
  description: 'Percentage with two decimals; 0 where there are no calls.',
});
const groupFields = {
  call_count: Type.Integer(),
  avg_latency_ms: latency,
  total_cost_usd: dollars,
  success_rate: rate,
};

const Overview = Type.Object(
  {
    total_calls: Type.Integer(),
    avg_latency_ms: latency,
    total_cost_usd: dollars,
    success_rate: rate,
    error_count: Type.Integer(),
  },
  { $id: 'Overview', additionalProperties: false },
);

const ModelRecord = Type.Object(
  { model: Type.String(), ...groupFields },
  { $id: 'ModelRecord', additionalProperties: false },
);

const FeatureRecord = Type.Object(
  { feature_name: Type.String(), ...groupFields },
  { $id: 'FeatureRecord', additionalProperties: false },
);

const DailyRecord = Type.Object(
  {
    date: Type.String({ format: 'date' }),
    label: Type.String({ examples: ['Nov 4'] }),
    call_count: Type.Integer(),
    total_cost_usd: dollars,
    avg_latency_ms: latency,
    error_count: Type.Integer(),
  },
  { $id: 'DailyRecord', additionalProperties: false },
);

const Problem = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.String({ description: 'Stable; listed in docs/errors.md.' }),
    request_id: Type.String({ description: 'Also in the header `x-request-id` and in the log.' }),
    errors: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), message: Type.String() }), {
        description: 'For invalid input: one entry for each field that is wrong.',
      }),
    ),
  },
  { $id: 'Problem', description: 'RFC 9457 problem document.' },
);

/** Registered by name, so that the OpenAPI document has one component for each. */
export const components = [
  TraceInput,
  Trace,
  ListedTrace,
  TracePage,
  Rejection,
  BatchReply,
  Overview,
  ModelRecord,
  FeatureRecord,
  DailyRecord,
  Problem,
];

export const TraceBody = refTo(TraceInput);

export const replies = {
  trace: refTo(Trace),
  tracePage: refTo(TracePage),
  batch: refTo(BatchReply),
  overview: refTo(Overview),
  byModel: Type.Array(refTo(ModelRecord), {
    description: 'By `call_count` descending, then by name.',
  }),
  byFeature: Type.Array(refTo(FeatureRecord), {
    description:
      'By `call_count` descending, then by name. Traces without `feature_name` are not listed.',
  }),
  daily: Type.Array(refTo(DailyRecord), {
    description: 'Seven UTC days, oldest first, today last; days without calls are zeros.',
  }),
};

const problem = (description: string): TSchema =>
  Type.Unsafe({
    description,
    content: { 'application/problem+json': { schema: refTo(Problem) } },
  });

/** The refusals that a route can answer besides its success, for the OpenAPI document. */
export const refusals = {
  key: {
    401: problem('API key missing, unknown, expired or revoked.'),
    403: problem('The key lacks the scope.'),
  },
  tooMany: { 429: problem('Too many failed attempts, or a rate limit.') },
  damaged: { 500: problem('The stored trace is damaged.') },
  notFound: { 404: problem('No such trace in this team.') },
  invalid: { 422: problem('Invalid input.') },
  invalidOrReused: {
    422: problem('Invalid input, or an Idempotency-Key that came before with another body.'),
  },
  body: {
    400: problem('Malformed JSON, UTF-8 or gzip.'),
    413: problem('Body too large.'),
    415: problem('Not application/json, or an encoding other than gzip.'),
  },
  write: { 503: problem('Overloaded, or the store does not answer.'), 507: problem('Disk full.') },
  unavailable: { 503: problem('The store does not answer.') },
} as const;

export const analyticsRefusals = {
  ...refusals.key,
  ...refusals.invalid,
  ...refusals.tooMany,
  ...refusals.unavailable,
};
