import assert from 'node:assert/strict';
import { test } from 'node:test';
import TypeBox from 'typebox';
import { Type } from '../../src/http/schema-builders.ts';

type Builders = typeof Type;

/** Uses every builder, with and without options. */
function schemas({
  Array,
  Boolean,
  Integer,
  Number,
  Object,
  Optional,
  String,
  Union,
  Unsafe,
}: Builders) {
  const open = { type: ['string', 'null'], description: 'text' };
  return [
    Boolean(),
    Boolean({ default: false }),
    Integer(),
    Integer({ minimum: 1 }),
    Number(),
    Number({ maximum: 100 }),
    String(),
    String({ minLength: 1, $id: 'text' }),
    Array(String()),
    Array(Integer(), { maxItems: 3 }),
    Union([String(), Integer()]),
    Union([Boolean(), Number()], { description: 'either' }),
    Unsafe(open),
    Optional(String({ pattern: 'a' })),
    Object({}),
    Object({ a: Optional(Integer()) }),
    Object({ a: String(), b: Optional(Unsafe(open)), c: Number() }),
    Object({ a: Object({ b: Optional(Boolean()) }) }, { additionalProperties: false, $id: 'o' }),
  ];
}

test('schemas are the same as with TypeBox', () => {
  assert.deepEqual(Object.keys(Type).toSorted(), builderNames);
  // As text: the order of the keys is that of the OpenAPI document.
  assert.equal(JSON.stringify(schemas(Type)), JSON.stringify(schemas(TypeBox)));
});

test('a schema that is made optional stays required elsewhere', () => {
  const field = Type.String();
  Type.Object({ field: Type.Optional(field) });
  assert.deepEqual(Type.Object({ field }).required, ['field']);
});

const builderNames = [
  'Array',
  'Boolean',
  'Integer',
  'Number',
  'Object',
  'Optional',
  'String',
  'Union',
  'Unsafe',
];
