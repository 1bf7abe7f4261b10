import { Type } from './schema-builders.ts';
import type { Static, TSchema } from 'typebox';
import { costNames } from '../core/trace-cost.ts';
import {
  extraNames,
  fieldNames,
  payloadNames,
  sentNames,
  traceFields,
} from '../core/trace-fields.ts';
import type { FieldKind, FieldName, PayloadName, TraceInput } from '../core/trace-fields.ts';
import { wholeOf } from '../core/trace-rules.ts';
import { limits } from '../limits.ts';
import type { Check } from './trace-checks.ts';

/** The JSON schemas of traces, derived from `core/trace-fields.ts`. */
const noControlCharacters = '^[^\\u0000-\\u001f\\u007f-\\u009f]*$';

interface FieldSchema {
  type: string;
  check?: Check;
  /** How the OpenAPI document shows what `check` checks. */
  openapi?: object;
  [keyword: string]: unknown;
}

/** The JSON Schema of each kind of field. */
const kindSchemas: Record<FieldKind, FieldSchema> = {
  label: {
    type: 'string',
    minLength: 1,
    maxLength: limits.labelCharsMax,
    pattern: noControlCharacters,
  },
  text: { type: 'string' },
  count: { type: 'integer', minimum: 0, maximum: limits.countMax },
  dollars: { type: 'number', minimum: 0, maximum: limits.costUsdMax },
  status: { type: 'string', enum: ['success', 'error'] },
  source: { type: 'string', enum: ['client', 'computed'] },
  time: { type: 'string', check: { kind: 'time' }, openapi: { format: 'date-time' } },
  metadata: {
    type: 'object',
    check: { kind: 'metadata' },
    openapi: {
      maxProperties: limits.metadataEntriesMax,
      propertyNames: {
        minLength: 1,
        maxLength: limits.metadataNameCharsMax,
        pattern: noControlCharacters,
      },
      additionalProperties: { type: 'string', maxLength: limits.metadataValueCharsMax },
    },
  },
};

function schemaOf(name: FieldName): FieldSchema {
  const { kind } = traceFields[name];
  const part = wholeOf(name);
  return part ? { ...kindSchemas[kind], check: { kind: 'part', ...part } } : kindSchemas[kind];
}

/** A nullable field has a list of types instead of a union, since that gives one clear error instead of three. */
function nullable(name: FieldName): TSchema {
  const { description } = traceFields[name];
  const { type, enum: values, ...rest } = schemaOf(name);
  return Type.Unsafe({
    type: [type, 'null'],
    ...(Array.isArray(values) && { enum: [...(values as unknown[]), null] }),
    ...rest,
    description,
  });
}

function neverNull(name: FieldName): TSchema {
  const { kind, description } = traceFields[name];
  return Type.Unsafe({ ...schemaOf(name), ...(kind !== 'status' && { description }) });
}

type Properties = Record<string, TSchema>;

function mapFields(
  schemaOf: (name: FieldName) => TSchema,
  names: readonly FieldName[] = fieldNames,
): Properties {
  return Object.fromEntries(names.map((name) => [name, schemaOf(name)]));
}

/** The fields of a cost; null if it is not known. */
export const costFields = mapFields(nullable, costNames);

const sentFields = mapFields(
  (name) => (traceFields[name].isRequired ? neverNull(name) : Type.Optional(nullable(name))),
  sentNames,
);

function storedField(name: FieldName): TSchema {
  const { isRequired, isExtra, kind } = traceFields[name];
  if (isExtra) return Type.Optional(neverNull(name));
  return isRequired || kind === 'status' ? neverNull(name) : nullable(name);
}

function listedField(name: FieldName): TSchema {
  const field = storedField(name);
  return traceFields[name].kind === 'text' ? Type.Optional(field) : field;
}

const withStamps = (fields: Properties): Properties => ({
  id: Type.String({ format: 'uuid' }),
  team_id: Type.String({ format: 'uuid' }),
  ...fields,
  created_at: Type.String({
    description: 'ISO 8601 in UTC with microseconds.',
    examples: ['2026-11-04T09:30:00.000001Z'],
  }),
  damaged: Type.Optional(
    Type.Array(Type.Unsafe<PayloadName>({ type: 'string', enum: [...payloadNames] }), {
      description:
        'Present only if part of the trace is damaged in the store: the fields that cannot be read. They are null or absent here.',
    }),
  ),
});

export const TraceInputSchema = Type.Unsafe<TraceInput>(
  Type.Object(sentFields, {
    $id: 'TraceInput',
    description: 'Unknown fields are ignored. Null means the same as leaving the field out.',
  }),
);

export const TraceSchema = Type.Object(withStamps(mapFields(storedField)), {
  $id: 'Trace',
  additionalProperties: false,
  description: `A stored trace. All fields are always present, except ${[...extraNames].join(', ')} and damaged.`,
});

export const ListedTraceSchema = Type.Object(withStamps(mapFields(listedField)), {
  $id: 'ListedTrace',
  additionalProperties: false,
  description: `A stored trace. The parameter \`omit\` can leave out these fields: ${payloadNames.join(', ')}.`,
});

export function refTo<T extends TSchema>(schema: T) {
  return Type.Unsafe<Static<T>>({ $ref: `${String(Reflect.get(schema, '$id'))}#` });
}

/** The body of a request with one trace. */
export const TraceBody = refTo(TraceInputSchema);

/** Each item is validated separately, so that an invalid one does not affect the others. */
export const BatchBody = Type.Object({
  traces: Type.Unsafe<readonly unknown[]>({
    type: 'array',
    minItems: 1,
    maxItems: limits.batchTracesMax,
    openapi: { items: refTo(TraceInputSchema) },
  }),
});
