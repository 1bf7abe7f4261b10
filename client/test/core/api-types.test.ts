import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { apiTypes, replyShapes } from '../../scripts/generate-types.ts';
import { typesFromSchemas } from '../../scripts/types-from-schemas.ts';

test('the types and reply checks of the client match docs/openapi.json', () => {
  const committed = (name: string) =>
    readFileSync(new URL(`../../src/${name}`, import.meta.url), 'utf8');
  assert.equal(committed('api-types.ts'), apiTypes(), 'run: npm run client-types');
  assert.equal(committed('reply-shapes.ts'), replyShapes(), 'run: npm run client-types');
});

test('the generator supports optional fields, null, enums, references, lists, unions, records and comments', () => {
  const text = typesFromSchemas({
    Thing: {
      type: 'object',
      description: 'A thing.',
      required: ['id', 'kinds'],
      properties: {
        id: { type: 'string', description: 'Ends a comment? */' },
        count: { type: ['integer', 'null'] },
        kinds: { type: 'array', items: { enum: ["it's", 2, null] } },
        texts: { type: ['object', 'null'], additionalProperties: { type: 'string' } },
        anything: { type: 'object' },
        'odd-name': { anyOf: [{ $ref: '#/components/schemas/Other' }, { type: 'boolean' }] },
      },
    },
    Other: { type: 'array', items: { $ref: '#/components/schemas/Thing' } },
  });
  assert.equal(
    text,
    [
      '/** A thing. */',
      'export interface Thing {',
      '/** Ends a comment? *\\/ */',
      'id: string;',
      'count?: number | null | undefined;',
      "kinds: ('it\\'s' | 2 | null)[];",
      'texts?: Record<string, string> | null | undefined;',
      'anything?: Record<string, unknown> | undefined;',
      '"odd-name"?: Other | boolean | undefined;',
      '}',
      '',
      'export type Other = (Thing)[];',
      '',
    ].join('\n'),
  );
});

test('the generator fails on schemas that it does not support', () => {
  assert.throws(() => typesFromSchemas({ X: { type: 'date' } }), /date/);
  assert.throws(() => typesFromSchemas({ X: { $ref: 'other.json#/X' } }), /other\.json/);
});
