import { Ajv } from 'ajv';
import type { AnySchemaObject, ValidateFunction } from 'ajv';
import type { Clock } from '../core/clock.ts';
import { DecodedBody } from './decoding/decoded-body.ts';
import { checkKeyword } from './trace-checks.ts';

export interface Validator {
  (data: unknown): boolean;
  errors?: NonNullable<ValidateFunction['errors']> | null;
}

/**
 * Compiles the schema of a route at the first request that needs it. All of them together take a quarter of the time to start, and
 * most processes need few of them.
 */
export function openValidators(
  clock: Clock,
  sharedSchemas: () => Record<string, unknown>,
): (route: { schema: AnySchemaObject }) => Validator {
  const ajv = new Ajv({
    // Nothing that was sent is changed: null stays null, and "12" stays a string.
    coerceTypes: false,
    removeAdditional: false,
    useDefaults: false,
    allErrors: true,
    allowUnionTypes: true,
    // The parameter `metadata.NAME` stands for all parameters of its pattern.
    allowMatchingProperties: true,
    addUsedSchema: false,
    keywords: ['openapi', 'rule', checkKeyword(clock)],
  });
  let hasShared = false;
  function compile(schema: AnySchemaObject): ValidateFunction {
    // When the routes are registered, the schemas that they refer to may not be known yet.
    if (!hasShared) ajv.addSchema(Object.values(sharedSchemas()) as AnySchemaObject[]);
    hasShared = true;
    return ajv.compile(schema);
  }

  return ({ schema }) => {
    let compiled: ValidateFunction | null = null;
    const validator: Validator = (data) => {
      // A decoding thread has validated it.
      if (data instanceof DecodedBody) return true;
      compiled ??= compile(schema);
      const isValid = compiled(data);
      validator.errors = compiled.errors ?? null;
      return isValid;
    };
    return validator;
  };
}
