import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';

/** Builds an OpenAPI 3.1 document from the route schemas. */
export function openapiOptions(version: string, basePath: string): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'TraceTally',
        version,
        description:
          'Records every AI call a team makes and reports cost, latency and errors. A GET or HEAD with an unknown query parameter gets a 422, and so does one with a repeated parameter that is not a filter.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: basePath === '' ? '/' : basePath }],
      tags: [
        { name: 'traces', description: 'Record AI calls and read them back.' },
        {
          name: 'opentelemetry',
          description: 'Record the model calls that instrumented apps and coding agents report.',
        },
        {
          name: 'analytics',
          description: "Totals and averages over the team's traces, always up to date.",
        },
      ],
      components: {
        securitySchemes: {
          apiKey: {
            type: 'http',
            scheme: 'bearer',
            description: 'An API key created with `tracetally keys create`.',
          },
        },
      },
      security: [{ apiKey: [] }],
    },
    refResolver: { buildLocalReference: (json) => json['$id'] as string },
    transform: ({ schema, url }) => ({ schema: showForReaders(schema), url }),
    transformObject: (document) =>
      'openapiObject' in document ? showForReaders(document.openapiObject) : {},
  };
}

/** If the document should show a field differently from how it is validated, `openapi` in its schema says how. */
function showForReaders<T>(schema: T): T {
  return JSON.parse(JSON.stringify(schema), (_name, part: FieldSchema | null) => {
    const { openapi, check, rule, pattern, ...rest } = part ?? {};
    if (typeof openapi === 'object') return { ...openapi, ...rest, ...openapi };
    return rule === undefined && check === undefined ? part : { ...rest, pattern };
  }) as T;
}

interface FieldSchema {
  /** In the document itself: its version. */
  openapi?: object | string;
  check?: object;
  rule?: string;
  pattern?: string;
}
