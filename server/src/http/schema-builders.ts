import type TypeBox from 'typebox';
import type { TSchema } from 'typebox';

/** Schemas that `Type.Optional` has made. */
const optional = new WeakSet<object>();

const builders = {
  Boolean: (options?: object) => ({ type: 'boolean', ...options }),
  Integer: (options?: object) => ({ type: 'integer', ...options }),
  Number: (options?: object) => ({ type: 'number', ...options }),
  String: (options?: object) => ({ type: 'string', ...options }),
  Array: (items: TSchema, options?: object) => ({ type: 'array', items, ...options }),
  Union: (anyOf: TSchema[], options?: object) => ({ anyOf, ...options }),
  Unsafe: (schema: TSchema) => ({ ...schema }),
  Optional(schema: TSchema) {
    const copy = { ...schema };
    optional.add(copy);
    return copy;
  },
  Object(properties: Record<string, TSchema>, options?: object) {
    const required = Object.entries(properties).filter(([, schema]) => !optional.has(schema));
    return {
      type: 'object',
      ...(required.length > 0 && { required: required.map(([name]) => name) }),
      properties,
      ...options,
    };
  },
};

/**
 * The builders of TypeBox that our schemas use, with its types, and the same JSON schemas as their results. TypeBox has hundreds of
 * modules: to load them took a fifth of the start.
 */
export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>;
