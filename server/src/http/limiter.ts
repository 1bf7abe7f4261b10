import type { FastifyRequest } from 'fastify';
import type { App } from './app-type.ts';

/** Counts one request and returns whether it exceeds the limit per minute. */
export type Limiter = (request: FastifyRequest) => Promise<LimitState>;
export type LimitState = { isExceeded: false } | { isExceeded: true; retryAfterS: number };

/** Counts per address, for IPv6 per /64 network. Needs @fastify/rate-limit on the app. */
export function limitByAddress(app: App, perMinuteMax: number): Limiter {
  const count = app.createRateLimit({ max: perMinuteMax, timeWindow: '1 minute' });
  return async (request) => stateOf(await count(withPlainAddress(request)));
}

/** Counts per result of `keyOf`. */
export function limitByKey(
  app: App,
  perMinuteMax: number,
  keyOf: (request: FastifyRequest) => string,
): Limiter {
  const count = app.createRateLimit({
    max: perMinuteMax,
    timeWindow: '1 minute',
    keyGenerator: keyOf,
  });
  return async (request) => stateOf(await count(request));
}

type Count = Awaited<ReturnType<ReturnType<App['createRateLimit']>>>;

function stateOf(count: Count): LimitState {
  return !count.isAllowed && count.isExceeded
    ? { isExceeded: true, retryAfterS: Math.max(1, count.ttlInSeconds) }
    : { isExceeded: false };
}

/** The part of a request that the counter reads. Some proxies append the port to the address, and a closed connection has no address. */
function withPlainAddress({ ip, routeOptions }: FastifyRequest): FastifyRequest {
  const gone = ip as string | undefined;
  return { ip: withoutPort(gone ?? 'gone'), routeOptions } as FastifyRequest;
}

function withoutPort(text: string): string {
  return /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
}
