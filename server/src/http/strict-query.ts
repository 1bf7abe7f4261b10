import type { FastifyInstance } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** For probes and files, which accept any query string. */
    ignoresQuery?: boolean;
  }
}

/** Reads reject unknown parameters, which are probably typing errors. Writes ignore them, so that no trace is lost because of one. */
export function refuseUnknownParameters(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    const isRead = [route.method].flat().every((method) => method === 'GET' || method === 'HEAD');
    if (!isRead || route.config?.ignoresQuery === true) return;
    const querystring = {
      type: 'object',
      properties: {},
      ...(route.schema?.querystring as object | undefined),
      additionalProperties: false,
    };
    route.schema = { ...route.schema, querystring };
  });
}

/** The schemas of query parameters by name. `rule` is what an error says about an invalid value. */
export type QueryParameters = Readonly<Record<string, { rule?: string }>>;

export function parametersOf(schema: { querystring?: unknown } | undefined): QueryParameters {
  const { properties } = (schema?.querystring ?? {}) as { properties?: QueryParameters };
  return properties ?? {};
}
