import type { FastifyRequest } from 'fastify';
import { fail } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import type { App } from './app-type.ts';

/** Counts one request, and fails if it exceeds the limit per minute. */
export type Limiter = (request: FastifyRequest) => Promise<void>;

/** Counts per result of `keyGenerator`. Needs @fastify/rate-limit on the app. */
export function openLimiter(
  app: App,
  code: ErrorCode,
  options: { max: number; keyGenerator?: (request: FastifyRequest) => string },
): Limiter {
  const count = app.createRateLimit({ timeWindow: '1 minute', ...options });
  return async (request) => {
    const state = await count(request);
    if (state.isAllowed || !state.isExceeded) return;
    fail(code, { retryAfterS: Math.max(1, state.ttlInSeconds) });
  };
}

/** Counts per address, for IPv6 per /64 network. */
export function openAddressLimiter(app: App, code: ErrorCode, max: number): Limiter {
  const limit = openLimiter(app, code, { max });
  return (request) => limit(withPlainAddress(request));
}

/** The part of a request that the counter reads. Some proxies append the port to the address, and a closed connection has no address. */
function withPlainAddress({ ip, routeOptions }: FastifyRequest): FastifyRequest {
  const gone = ip as string | undefined;
  return { ip: withoutPort(gone ?? 'gone'), routeOptions } as FastifyRequest;
}

function withoutPort(text: string): string {
  return /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
}
