import { refName } from './types-from-schemas.ts';
import type { Schema } from './types-from-schemas.ts';

/** One constant for each of these schemas that says what the client checks in a reply: the required fields and their types. */
export function shapesFromSchemas(
  schemas: Readonly<Record<string, Schema>>,
  names: readonly string[],
): string {
  return names
    .map((name) => {
      const shape = shapeOf(schemas[name] ?? {});
      return `export const ${shapeName(name)}: Shape<${name}> = ${shape};\n`;
    })
    .join('\n');
}

function shapeName(schemaName: string): string {
  return `${schemaName.charAt(0).toLowerCase()}${schemaName.slice(1)}Shape`;
}

function shapeOf(schema: Schema): string {
  const { $ref, type, items, properties = {}, required = [] } = schema;
  if ($ref !== undefined) return shapeName(refName($ref));
  if (type === 'array') return `[${shapeOf(items ?? {})}]`;
  if (type === 'object') {
    const fields = required.map((name) => `${name}: ${shapeOf(properties[name] ?? {})},`);
    return `{ ${fields.join('\n')} }`;
  }
  const kinds = typeof type === 'string' ? [type] : (type ?? []);
  if (kinds.length === 0) throw new Error('a schema of a reply has no type');
  return `'${kinds.map((kind) => (kind === 'integer' ? 'number' : kind)).join('|')}'`;
}
