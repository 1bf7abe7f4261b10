/**
 * Every field of a trace that a caller can send, declared once and in the order of a reply. A field has the same name in JSON, as a
 * property, and as the column of every store unless `column` sets another. Types, the request schema, replies, thread messages,
 * statements, row mapping and the OpenAPI document are derived from this table (docs/decisions/0010-one-name-per-field.md).
 */
interface FieldDeclaration {
  kind: FieldKind;
  description: string;
  isRequired?: true;
  /** Not part of the original API: replies include the field only if it was sent. */
  isExtra?: true;
  column?: string;
  /** For a text: the bit of `zstd_mask` that is set if it is compressed. It is stored, so it must never change. */
  zstdBit?: number;
}

/** What each kind of field holds. Texts may be long: they are stored compressed, and lists may leave them out. */
interface KindValues {
  label: string;
  text: string;
  count: number;
  dollars: number;
  status: 'success' | 'error';
}
export type FieldKind = keyof KindValues;

const declarations = {
  model: { kind: 'label', isRequired: true, description: 'Model name.' },
  input: { kind: 'text', zstdBit: 1, description: "The user's prompt." },
  output: { kind: 'text', zstdBit: 2, description: "The AI's response." },
  prompt_tokens: { kind: 'count', description: 'Input token count.' },
  completion_tokens: { kind: 'count', description: 'Output token count.' },
  latency_ms: { kind: 'count', description: 'Response time in milliseconds.' },
  cost_usd: {
    kind: 'dollars',
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
} as const satisfies Record<string, FieldDeclaration>;

type Declarations = typeof declarations;
export type FieldName = keyof Declarations;
type NamesOfKind<K extends FieldKind> = {
  [N in FieldName]: Declarations[N]['kind'] extends K ? N : never;
}[FieldName];
type RequiredName = {
  [N in FieldName]: Declarations[N] extends { isRequired: true } ? N : never;
}[FieldName];

type ValueOf<N extends FieldName> = KindValues[Declarations[N]['kind']];

/** The texts of a trace. */
export type PayloadName = NamesOfKind<'text'>;
/** Every field except the texts: short values that are read, summed and compared. */
export type NarrowName = Exclude<FieldName, PayloadName>;
/** Labels by which traces can be grouped. */
export type LabelName = NamesOfKind<'label'>;

/** The body of `POST /traces` after validation: types and ranges are checked. */
export type TraceInput = { [N in RequiredName]: ValueOf<N> } & {
  [N in Exclude<FieldName, RequiredName>]?: ValueOf<N> | null;
};

/** A trace that is ready to be stored: valid Unicode, defaults filled in, fully validated. */
export type TraceDraft = {
  [N in FieldName]: N extends RequiredName | 'status' ? ValueOf<N> : ValueOf<N> | null;
};

export type NarrowTrace = Pick<TraceDraft, NarrowName>;

export const traceFields: Readonly<Record<FieldName, FieldDeclaration>> = declarations;
export const fieldNames = Object.keys(declarations) as readonly FieldName[];
export const payloadNames = fieldNames.filter(isPayload);
export const narrowNames = fieldNames.filter((name): name is NarrowName => !isPayload(name));
/** Included in replies only if they were sent. */
export const extraNames: ReadonlySet<FieldName> = new Set(
  fieldNames.filter((name) => traceFields[name].isExtra),
);

function isPayload(name: FieldName): name is PayloadName {
  return declarations[name].kind === 'text';
}

export function columnOf(name: FieldName): string {
  return traceFields[name].column ?? name;
}
