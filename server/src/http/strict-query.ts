import type { FastifyInstance, FastifyRequest } from 'fastify';
import { limits } from '../limits.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** For probes and files, which accept any query string. */
    ignoresQuery?: boolean;
  }
}

const closed = { additionalProperties: false };

/** An unknown parameter is probably a typo, so every route rejects it. */
export function refuseUnknownParameters(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (route.config?.ignoresQuery === true) return;
    const querystring = {
      type: 'object',
      properties: {},
      ...parametersOf(route.schema),
      ...closed,
    };
    route.schema = { ...route.schema, querystring };
  });
}

/** The names of the query parameters of this request's route. */
export function knownParameters(request: FastifyRequest): string[] {
  return Object.keys(parametersOf(request.routeOptions.schema).properties ?? {});
}

function parametersOf(schema: { querystring?: unknown } | undefined): { properties?: object } {
  return (schema?.querystring ?? {}) as { properties?: object };
}

/** The name of an unknown parameter in an error. A name long enough to be an API key is not repeated. */
export function shownParameter(name: string): string {
  return name.length < limits.envKeyCharsMin && /^[\w.[\]-]+$/.test(name) ? name : 'query';
}

export function unknownParameterMessage(known: readonly string[]): string {
  return known.length === 0
    ? 'is not a known parameter; this path has none'
    : `is not a known parameter; this path has ${known.join(', ')}`;
}
