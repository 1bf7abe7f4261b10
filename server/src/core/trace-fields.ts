import type { TokenKind } from './prices/rates.ts';

/**
 * Every field of a trace, declared once and in the order of a reply. A field has the same name in JSON, as a
 * property, and as the column of every store unless `column` sets another. Types, the request schema, replies, thread messages,
 * statements, row mapping and the OpenAPI document are derived from this table (docs/decisions/0010-one-name-per-field.md).
 */
interface FieldDeclaration {
  kind: FieldKind;
  description: string;
  isRequired?: true;
  /** Not part of the original API: replies include the field only if it was sent. */
  isExtra?: true;
  /** Set by the service. What a caller sends is ignored, as for an unknown field. */
  isAssigned?: true;
  /** An extra field that is often set. The others are stored apart, since most traces have none of them. */
  isUsual?: true;
  column?: string;
  /** A count that is added up in every rollup. */
  isSummed?: true;
  /** Lists can be filtered by a smallest value. */
  hasMinimum?: true;
  /** The count that this one is included in: all parts of a count together are not more than the count. */
  partOf?: string;
  /** The kind of tokens that it counts. */
  pricedAs?: TokenKind;
  /** For a payload: the bit of `zstd_mask` that is set if it is compressed. It is stored, so it must never change. */
  zstdBit?: number;
}

/** What each kind of field holds. Texts may be long: they are stored compressed, and lists may leave them out. */
interface KindValues {
  label: string;
  text: string;
  count: number;
  dollars: number;
  status: TraceStatus;
  /** Microseconds since 1970. */
  time: number;
  /** An object with text values, as JSON. It is stored like a text. */
  metadata: string;
  source: CostSource;
}

/** What a caller sends and receives, if it differs. */
interface WireValues extends Omit<KindValues, 'time' | 'metadata'> {
  time: string;
  metadata: Readonly<Record<string, string>>;
}
export type FieldKind = keyof KindValues;
export type TraceStatus = 'success' | 'error';
export type CostSource = 'client' | 'computed';

const declarations = {
  model: { kind: 'label', isRequired: true, description: 'Model name.' },
  input: { kind: 'text', zstdBit: 1, description: "The user's prompt." },
  output: { kind: 'text', zstdBit: 2, description: "The AI's response." },
  prompt_tokens: {
    kind: 'count',
    isSummed: true,
    pricedAs: 'input',
    description: 'Input token count.',
  },
  completion_tokens: {
    kind: 'count',
    isSummed: true,
    pricedAs: 'output',
    description: 'Output token count.',
  },
  latency_ms: { kind: 'count', hasMinimum: true, description: 'Response time in milliseconds.' },
  cost_usd: {
    kind: 'dollars',
    hasMinimum: true,
    description:
      'Cost in US dollars. Sums are exact for up to 12 decimals and 15 significant digits.',
  },
  status: {
    kind: 'status',
    column: 'is_error',
    description: 'Default: `error` if `error_message` is not empty, otherwise `success`.',
  },
  error_message: { kind: 'text', zstdBit: 4, description: 'Error details if the call failed.' },
  feature_name: { kind: 'label', description: 'Feature label used for analytics.' },
  user_identifier: { kind: 'label', description: 'User ID used for per-user analytics.' },
  response_model: {
    kind: 'label',
    isExtra: true,
    description:
      'The exact model that answered, such as `gpt-4o-2024-08-06`, if it differs from `model`.',
  },
  started_at: {
    kind: 'time',
    isExtra: true,
    column: 'started_at_us',
    description:
      'When the call began (RFC 3339). It decides the day of the call; if left out, `created_at` does. Stored to the microsecond.',
  },
  environment: {
    kind: 'label',
    isExtra: true,
    description: 'Where the app runs, such as `production`.',
  },
  provider: {
    kind: 'label',
    isExtra: true,
    description: 'The service that ran the model, such as `openai`.',
  },
  session_id: { kind: 'label', isExtra: true, description: 'The conversation of the call.' },
  run_id: { kind: 'label', isExtra: true, description: 'One run of an agent.' },
  cache_read_tokens: {
    kind: 'count',
    isExtra: true,
    isSummed: true,
    partOf: 'prompt_tokens',
    pricedAs: 'cacheRead',
    description: 'The part of `prompt_tokens` that was read from a cache.',
  },
  cache_write_tokens: {
    kind: 'count',
    isExtra: true,
    isSummed: true,
    partOf: 'prompt_tokens',
    pricedAs: 'cacheWrite',
    description: 'The part of `prompt_tokens` that was written to a cache.',
  },
  reasoning_tokens: {
    kind: 'count',
    isExtra: true,
    isSummed: true,
    partOf: 'completion_tokens',
    pricedAs: 'reasoning',
    description: 'The part of `completion_tokens` that was spent on reasoning.',
  },
  ttft_ms: { kind: 'count', isExtra: true, description: 'Milliseconds to the first token.' },
  error_type: {
    kind: 'label',
    isExtra: true,
    description: 'The kind of error, such as `rate_limit` or `timeout`.',
  },
  cost_source: {
    kind: 'source',
    isExtra: true,
    isAssigned: true,
    isUsual: true,
    description:
      'Where `cost_usd` comes from: `client` if it was sent, `computed` if the server computed it from the tokens. Present only if the server computes missing costs.',
  },
  metadata: {
    kind: 'metadata',
    isExtra: true,
    zstdBit: 8,
    description: 'Up to 16 further names and text values.',
  },
} as const satisfies Record<string, FieldDeclaration>;

type Declarations = typeof declarations;
export type FieldName = keyof Declarations;
type NamesOfKind<K extends FieldKind> = {
  [N in FieldName]: Declarations[N]['kind'] extends K ? N : never;
}[FieldName];
type RequiredName = {
  [N in FieldName]: Declarations[N] extends { isRequired: true } ? N : never;
}[FieldName];

type AssignedName = {
  [N in FieldName]: Declarations[N] extends { isAssigned: true } ? N : never;
}[FieldName];

type ValueOf<N extends FieldName> = KindValues[Declarations[N]['kind']];
type WireValueOf<N extends FieldName> = WireValues[Declarations[N]['kind']];

/** Counts that are added up in every rollup. */
export type SummedName = {
  [N in FieldName]: Declarations[N] extends { isSummed: true } ? N : never;
}[FieldName];
/** Lists can be filtered by a smallest value of these. */
export type BoundedName = {
  [N in FieldName]: Declarations[N] extends { hasMinimum: true } ? N : never;
}[FieldName];
/** The fields that may be long. */
export type PayloadName = NamesOfKind<'text' | 'metadata'>;
/** Every field except the payloads: short values that are read, summed and compared. */
export type NarrowName = Exclude<FieldName, PayloadName>;
/** Labels by which traces can be grouped. */
export type LabelName = NamesOfKind<'label'>;

/** The body of `POST /traces` after validation: types and ranges are checked. */
export type TraceInput = { [N in RequiredName]: WireValueOf<N> } & {
  [N in Exclude<FieldName, RequiredName | AssignedName>]?: WireValueOf<N> | null;
};

/** A trace that is ready to be stored: valid Unicode, defaults filled in, fully validated. */
export type TraceDraft = {
  [N in FieldName]: N extends RequiredName | 'status' ? ValueOf<N> : ValueOf<N> | null;
};

export type NarrowTrace = Pick<TraceDraft, NarrowName>;

export const traceFields: Readonly<Record<FieldName, FieldDeclaration>> = declarations;
export const fieldNames = Object.keys(declarations) as readonly FieldName[];
export const payloadNames = fieldNames.filter(isPayload);
/** The payloads that a preview shortens. Part of a JSON object would not be JSON, and metadata is short. */
export const previewedNames = payloadNames.filter((name) => declarations[name].kind === 'text');
export const narrowNames = fieldNames.filter((name): name is NarrowName => !isPayload(name));
/** Included in replies only if they were sent. */
export const extraNames: ReadonlySet<FieldName> = new Set(
  fieldNames.filter((name) => traceFields[name].isExtra),
);

/** Stored with every trace, or null; and those that most traces do not have. */
export const usualNames = fieldNames.filter(
  (name) => !extraNames.has(name) || traceFields[name].isUsual,
);
export const unusualNames = fieldNames.filter((name) => !usualNames.includes(name));
/** What a caller can send. */
export const sentNames = fieldNames.filter((name) => !traceFields[name].isAssigned);

export const summedNames = fieldNames.filter(
  (name): name is SummedName => traceFields[name].isSummed === true,
);

export const boundedNames = fieldNames.filter(
  (name): name is BoundedName => traceFields[name].hasMinimum === true,
);
/** When a call began. */
export const startName = 'started_at' satisfies FieldName;

function isPayload(name: FieldName): name is PayloadName {
  const { kind } = declarations[name];
  return kind === 'text' || kind === 'metadata';
}

export function columnOf(name: FieldName): string {
  return traceFields[name].column ?? name;
}
