import type { FastifyReply, FastifyRequest } from 'fastify';

/** The id by which the log knows the request, and what keeps replies out of caches and guesses about their type. */
export function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id);
  reply.header('x-content-type-options', 'nosniff');
  reply.header('cache-control', 'no-store');
}

/** One line a request, with nothing in it that the caller wrote. Success is not news: it would drown what is. */
export function logRequest(request: FastifyRequest, reply: FastifyReply): void {
  const level = reply.statusCode >= 400 ? 'info' : 'debug';
  if (level === 'debug' && request.log.level !== 'debug') return;
  request.log[level](
    {
      request_id: request.id,
      method: request.method,
      route: request.routeOptions.url ?? null,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 10) / 10,
      team_id: request.caller?.teamId,
      key_id: request.caller?.keyId,
    },
    'request',
  );
}
