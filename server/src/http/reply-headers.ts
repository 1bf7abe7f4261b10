import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    startMs: number;
  }
}

/** Sets the request id, and headers that prevent caching and content-type sniffing. */
export function beginReply(request: FastifyRequest, reply: FastifyReply): void {
  request.startMs = performance.now();
  reply.header('x-request-id', request.id);
  reply.header('x-content-type-options', 'nosniff');
  reply.header('cache-control', 'no-store');
}

/** Logs one line per request, without anything that the caller wrote. Successful requests are logged only at debug level. */
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
