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
          'Records every AI call a team makes and tallies what it cost, how long it took and how often it failed.',
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
            description: 'A key made by `tracetally keys create`.',
          },
        },
      },
      security: [{ apiKey: [] }],
    },
    refResolver: { buildLocalReference: (json) => json['$id'] as string },
    transform: ({ schema, url }) => ({
      schema: showQueryTypes(schema),
      url: withoutBase(url, basePath),
    }),
  };
}

function withoutBase(url: string, basePath: string): string {
  return url.startsWith(`${basePath}/`) ? url.slice(basePath.length) : url;
}

/** Query values are validated as texts; `openapi` in their schema says what a reader should see. */
function showQueryTypes<T extends object>(schema: T): T {
  const query = Reflect.get(schema, 'querystring') as QuerySchema | undefined;
  if (!query) return schema;
  const properties = Object.entries(query.properties).map(
    ([name, { openapi, pattern, ...shown }]) => [
      name,
      openapi ? { ...openapi, ...shown, type: openapi.type } : { ...shown, pattern },
    ],
  );
  return { ...schema, querystring: { ...query, properties: Object.fromEntries(properties) } };
}

interface QuerySchema {
  properties: Record<string, { openapi?: { type: string }; pattern?: string }>;
}
