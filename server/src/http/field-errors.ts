import type { FastifySchemaValidationError } from 'fastify';
import { metadataPrefix } from '../core/question.ts';
import type { FieldError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { QueryParameters } from './strict-query.ts';

/** Describes what each invalid field should have been. The value itself is never repeated: it may be a prompt. */
export function fieldErrors(
  errors: readonly FastifySchemaValidationError[],
  context = 'body',
): FieldError[] {
  return firstOfEach(
    errors.map((error) => ({ field: fieldOf(error, context), message: messageOf(error) })),
  );
}

/** The errors of a query string. Its values are strings, or lists of strings if a parameter is repeated. */
export function queryErrors(
  errors: readonly FastifySchemaValidationError[],
  parameters: QueryParameters,
): FieldError[] {
  const all = errors.map((error) => {
    const name = parameterOf(error);
    const field = name.startsWith(metadataPrefix) && !isPlainName(name) ? anyMetadata : name;
    switch (error.keyword) {
      case 'additionalProperties':
        return unknownParameter(String(error.params['additionalProperty']), parameters);
      case 'type':
        return { field, message: 'must appear only once' };
      case 'maxItems':
        return { field, message: `must appear at most ${String(error.params['limit'])} times` };
      default: {
        const { rule } = parameters[name] ?? parameters[anyMetadata] ?? {};
        return { field, message: rule ?? messageOf(error) };
      }
    }
  });
  return firstOfEach(all).slice(0, limits.queryErrorsMax);
}

/** Stands for the parameters of all metadata entries. */
const anyMetadata = `${metadataPrefix}NAME`;

/** The first part of the path: the second one is the index of a value. */
function parameterOf({ instancePath }: FastifySchemaValidationError): string {
  const [, name = ''] = instancePath.split('/');
  return name === '' ? 'query' : name.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** A name long enough to be an API key is not repeated. */
function isPlainName(name: string): boolean {
  return name.length < limits.envKeyCharsMin && /^[\w.[\]-]+$/.test(name);
}

function unknownParameter(name: string, parameters: QueryParameters): FieldError {
  const known = Object.keys(parameters).join(', ');
  return {
    field: isPlainName(name) ? name : 'query',
    message: `is not a known parameter; this endpoint ${known ? `accepts ${known}` : 'has none'}`,
  };
}

/** A wrong type also breaks the other rules; the first error of a field is the useful one. */
function firstOfEach(errors: readonly FieldError[]): FieldError[] {
  const byField = Map.groupBy(errors, ({ field }) => field);
  return [...byField.values()].flatMap((ofField) => ofField.slice(0, 1));
}

function fieldOf(error: FastifySchemaValidationError, context: string): string {
  if (error.keyword === 'required') return String(error.params['missingProperty']);
  const path = error.instancePath.slice(1).replaceAll('/', '.');
  return path === '' ? context : path;
}

function messageOf({ keyword, params, message }: FastifySchemaValidationError): string {
  return messages[keyword]?.(params) ?? message ?? 'is not valid';
}

type Params = FastifySchemaValidationError['params'];

/** By keyword of JSON Schema. */
const messages: Readonly<Record<string, (params: Params) => string>> = {
  required: () => 'is required',
  type: ({ type }) => `must be ${typeNames(type)}`,
  minimum: ({ limit }) => `must be at least ${String(limit)}`,
  maximum: ({ limit }) => `must be at most ${String(limit)}`,
  minLength: () => 'must not be empty',
  maxLength: ({ limit }) => `must be at most ${String(limit)} characters long`,
  minItems: () => 'must not be empty',
  maxItems: ({ limit }) => `must have at most ${String(limit)} items`,
  enum: ({ allowedValues }) => `must be one of ${quoted(allowedValues)}`,
  pattern: () => 'must not contain control characters',
};

/** `['integer', 'null']` reads "an integer or null". */
function typeNames(type: unknown): string {
  const names = String(type).split(',');
  return names.map((name) => withArticle[name] ?? name).join(' or ');
}

const withArticle: Readonly<Record<string, string>> = {
  integer: 'an integer',
  number: 'a finite number',
  string: 'a string',
  object: 'a JSON object',
  array: 'an array',
};

function quoted(values: unknown): string {
  const present = (values as (string | null)[]).filter((value) => value !== null);
  return present.map((value) => `"${value}"`).join(', ');
}
