import type { FastifyRequest } from 'fastify';
import type { App } from './route.ts';

/** Counts one request and tells whether that was too many for this minute. */
export type Limiter = (request: FastifyRequest) => Promise<LimitState>;
export type LimitState = { isExceeded: false } | { isExceeded: true; retryAfterS: number };

/** By address (IPv6 by its /64 network), or by what `keyOf` tells. Needs @fastify/rate-limit on the app. */
export function openLimiter(
  app: App,
  perMinuteMax: number,
  keyOf?: (request: FastifyRequest) => string,
): Limiter {
  const count = app.createRateLimit({
    max: perMinuteMax,
    timeWindow: '1 minute',
    ...(keyOf ? { keyGenerator: keyOf } : {}),
  });
  return async (request) => {
    const state = await count(request);
    return !state.isAllowed && state.isExceeded
      ? { isExceeded: true, retryAfterS: Math.max(1, state.ttlInSeconds) }
      : { isExceeded: false };
  };
}
