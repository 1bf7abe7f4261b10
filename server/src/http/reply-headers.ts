import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    startMs: number;
  }
}

/** The id by which the log knows the request, and what keeps replies out of caches and guesses about their type. */
export function beginReply(request: FastifyRequest, reply: FastifyReply): void {
  request.startMs = performance.now();
  reply.header('x-request-id', request.id);
  reply.header('x-content-type-options', 'nosniff');
  reply.header('cache-control', 'no-store');
}

/** One line a request, with nothing in it that the caller wrote. Success is not news: it would drown what is. */
export function logRequest(
  logger: FastifyBaseLogger,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const level = reply.statusCode >= 400 ? 'info' : 'debug';
  logger[level](
    {
      request_id: request.id,
      method: request.method,
      route: request.routeOptions.url ?? null,
      status: reply.statusCode,
      ms: Math.round((performance.now() - request.startMs) * 10) / 10,
      team_id: request.caller?.teamId,
      key_id: request.caller?.keyId,
    },
    'request',
  );
}
