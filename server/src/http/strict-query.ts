import type { FastifyInstance, FastifyRequest } from 'fastify';
import { limits } from '../limits.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** For probes and files, which may be asked with any query. */
    ignoresQuery?: boolean;
  }
}

const closed = { additionalProperties: false };

/**
 * A parameter that has no effect on a read is probably a typing error, so reads refuse parameters that they do not have.
 * Writes ignore them: no trace is lost because of an odd query.
 */
export function refuseUnknownParameters(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    const isRead = [route.method].flat().every((method) => method === 'GET' || method === 'HEAD');
    if (!isRead || route.config?.ignoresQuery === true) return;
    const querystring = {
      type: 'object',
      properties: {},
      ...parametersOf(route.schema),
      ...closed,
    };
    route.schema = { ...route.schema, querystring };
  });
}

/** The names of the parameters that the route of this request has. */
export function knownParameters(request: FastifyRequest): string[] {
  return Object.keys(parametersOf(request.routeOptions.schema).properties ?? {});
}

function parametersOf(schema: { querystring?: unknown } | undefined): { properties?: object } {
  return (schema?.querystring ?? {}) as { properties?: object };
}

/** How an unknown parameter is named in an error. A name that is long enough to be an API key is not repeated. */
export function shownParameter(name: string): string {
  return name.length < limits.envKeyCharsMin && /^[\w.[\]-]+$/.test(name) ? name : 'query';
}

export function unknownParameterMessage(known: readonly string[]): string {
  return known.length === 0
    ? 'is not a known parameter: this path has none'
    : `is not a known parameter: this path has ${known.join(', ')}`;
}
