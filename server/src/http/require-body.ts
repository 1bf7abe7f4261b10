import type { FastifyRequest } from 'fastify';
import { fail } from '../errors.ts';

/** Without a body Fastify skips the parser, and validation would report an invalid body instead of a missing one. */
export function requireBody({ body, routeOptions }: FastifyRequest): void {
  if (body === undefined && routeOptions.schema?.body !== undefined) {
    fail('malformed_json', { say: 'The body is missing; a JSON object was expected.' });
  }
}
