import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';

/** How the route schemas become an OpenAPI 3.1 document. */
export function openapiOptions(version: string, basePath: string): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'TraceTally',
        version,
        description:
          'Records every AI call a team makes and reports cost, latency and errors. A GET with a query parameter that the endpoint does not have, or with a repeated one, is answered with 422.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: basePath === '' ? '/' : basePath }],
      tags: [
        { name: 'traces', description: 'Record AI calls and read them back.' },
        { name: 'analytics', description: "Sums over the team's traces, always up to date." },
      ],
      components: {
        securitySchemes: {
          apiKey: {
            type: 'http',
            scheme: 'bearer',
            description: 'A key created by `tracetally keys create`.',
          },
        },
      },
      security: [{ apiKey: [] }],
    },
    refResolver: { buildLocalReference: (json) => json['$id'] as string },
    transform: ({ schema, url }) => ({
      schema: showForReaders(schema),
      url: withoutBase(url, basePath),
    }),
  };
}

function withoutBase(url: string, basePath: string): string {
  return url.startsWith(`${basePath}/`) ? url.slice(basePath.length) : url;
}

/** Where something is validated in another way than a reader should see it, `openapi` in its schema says what to show. */
function showForReaders<T extends object>(schema: T): T {
  const parts = ['querystring', 'headers', 'body'].flatMap((part) => {
    const object = Reflect.get(schema, part) as ObjectSchema | undefined;
    return object?.properties ? [[part, { ...object, properties: shown(object.properties) }]] : [];
  });
  return { ...schema, ...Object.fromEntries(parts) };
}

function shown(properties: NonNullable<ObjectSchema['properties']>) {
  return Object.fromEntries(
    Object.entries(properties).map(([name, { openapi, ...schema }]) => {
      if (!openapi) return [name, schema];
      const { pattern: _, ...rest } = schema;
      return [name, { ...openapi, ...rest, ...openapi }];
    }),
  );
}

interface ObjectSchema {
  properties?: Record<string, { openapi?: object; pattern?: string }>;
}
