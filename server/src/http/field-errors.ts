import type { FastifySchemaValidationError } from 'fastify';
import type { FieldError } from '../errors.ts';
import { payloadNames } from '../core/trace-fields.ts';
import { limits } from '../limits.ts';
import { groupLimit } from './parameters.ts';
import { shownParameter, unknownParameterMessage } from './strict-query.ts';

/** The errors of a query string. Its values are strings, or lists of strings if a parameter is repeated. */
export function queryErrors(
  errors: readonly FastifySchemaValidationError[],
  known: readonly string[],
): FieldError[] {
  const byField = new Map<string, FieldError>();
  for (const error of errors) {
    const isUnknown = error.keyword === 'additionalProperties';
    const field = isUnknown
      ? shownParameter(String(error.params['additionalProperty']))
      : fieldOf(error, 'query');
    const message = isUnknown ? unknownParameterMessage(known) : parameterMessage(error);
    if (!byField.has(field)) byField.set(field, { field, message });
  }
  return [...byField.values()].slice(0, limits.queryErrorsMax);
}

function parameterMessage(error: FastifySchemaValidationError): string {
  return error.keyword === 'type' ? 'must be given only once' : messageOf(error);
}

/** Describes what each invalid field should have been. The value itself is never repeated: it may be a prompt. */
export function fieldErrors(
  errors: readonly FastifySchemaValidationError[],
  context: string | undefined,
): FieldError[] {
  const byField = new Map<string, FieldError>();
  for (const error of errors) {
    const field = fieldOf(error, context);
    // A wrong type also breaks the other rules; the first error is the useful one.
    if (!byField.has(field)) byField.set(field, { field, message: messageOf(error) });
  }
  return [...byField.values()];
}

function fieldOf(error: FastifySchemaValidationError, context: string | undefined): string {
  if (error.keyword === 'required') return String(error.params['missingProperty']);
  const path = error.instancePath.slice(1).replaceAll('/', '.');
  return path === '' ? (context ?? 'body') : path;
}

function messageOf({
  keyword,
  params,
  instancePath,
  message,
}: FastifySchemaValidationError): string {
  switch (keyword) {
    case 'required':
      return 'is required';
    case 'type':
      return `must be ${typeNames(params['type'])}`;
    case 'minimum':
      return `must be at least ${String(params['limit'])}`;
    case 'maximum':
      return `must be at most ${String(params['limit'])}`;
    case 'minLength':
      return 'must not be empty';
    case 'maxLength':
      return `must be at most ${String(params['limit'])} characters long`;
    case 'minItems':
      return 'must not be empty';
    case 'maxItems':
      return `must have at most ${String(params['limit'])} items`;
    case 'enum':
      return `must be one of ${quoted(params['allowedValues'])}`;
    case 'pattern':
      if (params['pattern'] === groupLimit) return groupLimitMessage;
      return patternMessages[instancePath] ?? 'must not contain control characters';
    default:
      return message ?? 'is not valid';
  }
}

const patternMessages: Readonly<Record<string, string>> = {
  '/page': 'must be a positive integer with at most 9 digits',
  '/limit': `must be a positive integer with at most 9 digits (values over ${limits.pageRowsMax} are lowered to ${limits.pageRowsMax})`,
  '/preview_chars': `must be an integer from 1 to ${limits.previewCharsMax}`,
  '/omit': `must be one or more of ${quoted(payloadNames)}, each at most once, separated by commas`,
};

const groupLimitMessage = `must be an integer from 1 to ${limits.groupRowsMax}`;

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
  array: 'a list',
};

function quoted(values: unknown): string {
  return (values as (string | null)[])
    .filter((value) => value !== null)
    .map((value) => `"${value}"`)
    .join(', ');
}
