/** TypeScript interfaces from JSON schemas: no more of JSON Schema than docs/openapi.json uses, and an error for the rest. */
export interface Schema {
  type?: string | readonly string[];
  enum?: readonly (string | number | boolean | null)[];
  $ref?: string;
  items?: Schema;
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  /** A schema for the values of an object with any names. */
  additionalProperties?: boolean | Schema;
  anyOf?: readonly Schema[];
  description?: string;
}

const refPrefix = '#/components/schemas/';

/** One exported interface or type for each schema, in the order of the document. */
export function typesFromSchemas(schemas: Readonly<Record<string, Schema>>): string {
  return Object.entries(schemas)
    .map(([name, schema]) => `${comment(schema)}${declaration(name, schema)}\n`)
    .join('\n');
}

function declaration(name: string, schema: Schema): string {
  if (schema.type === 'object' && schema.properties !== undefined) {
    return `export interface ${name} ${objectType(schema)}`;
  }
  return `export type ${name} = ${typeOf(schema)};`;
}

function objectType({ properties = {}, required = [] }: Schema): string {
  const fields = Object.entries(properties).map(([name, schema]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    // `undefined` is spelled out, so that a caller with exactOptionalPropertyTypes may pass on what he may not have.
    return required.includes(name)
      ? `${comment(schema)}${key}: ${typeOf(schema)};`
      : `${comment(schema)}${key}?: ${typeOf(schema)} | undefined;`;
  });
  return `{\n${fields.join('\n')}\n}`;
}

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return refName(schema.$ref);
  if (schema.enum !== undefined) return schema.enum.map((value) => literal(value)).join(' | ');
  if (schema.anyOf !== undefined) return schema.anyOf.map((one) => typeOf(one)).join(' | ');
  const kinds = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
  if (kinds.length === 0) return 'unknown';
  return kinds.map((kind) => typeOfKind(kind, schema)).join(' | ');
}

function typeOfKind(kind: string, schema: Schema): string {
  switch (kind) {
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
    case 'boolean':
    case 'null':
      return kind;
    case 'array':
      return `(${typeOf(schema.items ?? {})})[]`;
    case 'object':
      return schema.properties === undefined ? recordType(schema) : objectType(schema);
    default:
      throw new Error(`no TypeScript type is known for the JSON type ${kind}`);
  }
}

function recordType({ additionalProperties: values }: Schema): string {
  return `Record<string, ${typeof values === 'object' ? typeOf(values) : 'unknown'}>`;
}

/** A query parameter of the document. */
export interface Parameter {
  name: string;
  in: string;
  description?: string;
  schema: Schema;
}

/** An interface for query parameters. Those that may be repeated accept one value or a list; null stands for "not set". */
export function typeFromParameters(
  name: string,
  about: string,
  parameters: readonly Parameter[],
): string {
  const fields = parameters.map(({ name: wireName, description, schema }) => {
    const [key = '', isMap] = wireName.split('.');
    const type = isMap ? `Readonly<Record<string, ${valuesType(schema)}>>` : valuesType(schema);
    return `${comment(description === undefined ? {} : { description })}${key}?: ${type} | undefined;`;
  });
  return `/** ${about} */\nexport interface ${name} {\n${fields.join('\n')}\n}\n`;
}

function valuesType(schema: Schema): string {
  if (schema.type !== 'array') return typeOf(schema);
  const item = `${typeOf(schema.items ?? {})}${schema.items?.enum ? '' : ' | null'}`;
  return `${item} | readonly (${item})[]`;
}

/** The schemas that are named anywhere in this part of the document. */
export function refsIn(part: unknown): string[] {
  const refs = JSON.stringify(part ?? null).matchAll(/"\$ref":"([^"]*)"/g);
  return Array.from(refs, ([, ref = '']) => refName(ref));
}

export function refName(ref: string): string {
  if (!ref.startsWith(refPrefix)) throw new Error(`${ref} is not below ${refPrefix}`);
  return ref.slice(refPrefix.length);
}

function literal(value: string | number | boolean | null): string {
  return typeof value === 'string'
    ? `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
    : String(value);
}

function comment({ description }: Schema): string {
  if (description === undefined) return '';
  const text = description.replaceAll('*/', '*\\/').split('\n');
  return text.length === 1
    ? `/** ${text[0]} */\n`
    : `/**\n${text.map((line) => ` * ${line}\n`).join('')} */\n`;
}
