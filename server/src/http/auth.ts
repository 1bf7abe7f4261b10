import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Permission } from '../core/api-key.ts';
import { Failure, errorTable } from '../errors.ts';
import { requireScope } from './authenticator.ts';
import type { Authenticator, Caller } from './authenticator.ts';
import type { Limiter } from './limiter.ts';
import { isFromDashboard } from './sessions.ts';
import type { Sessions } from './sessions.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null;
  }
}

export interface Gate {
  authenticator: Authenticator;
  sessions: Sessions;
  /** Counts only failed attempts per address, so that a valid key is never blocked because of others. */
  failedAttempts: Limiter;
  /** Counts sign-ins per key. Each of them can be signed out, which stores a row. */
  signIns: Limiter;
  /** Counts requests per key; null if there is no limit. */
  keyRequests: Limiter | null;
}

/** A hook that accepts a request if its key has the permission. It runs before the body is read. */
export function requireKey(gate: Gate, permission: Permission, readKey = bearerKey) {
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    let attempt: Caller | Promise<Caller>;
    try {
      attempt = identify(gate, request, permission, readKey);
    } catch (error) {
      attempt = Promise.reject(error);
    }
    if (attempt instanceof Promise || gate.keyRequests !== null) {
      letIn(gate, request, attempt, permission).then(() => done(), done);
      return;
    }
    // The usual case, on the hot path: no promise and no extra turn of the event loop.
    request.caller = attempt;
    requireScope(attempt, permission);
    done();
  };
}

type ReadKey = (headers: IncomingHttpHeaders) => string | undefined;

const bearerKey: ReadKey = ({ authorization }) => authorization;

/** Exporters of telemetry can be set up with either header. */
export const bearerOrApiKey: ReadKey = ({ authorization, 'x-api-key': key }) =>
  authorization ?? (typeof key === 'string' ? `Bearer ${key}` : undefined);

/** An Authorization header takes precedence over a session cookie. */
function identify(
  { authenticator, sessions }: Gate,
  { headers }: FastifyRequest,
  permission: Permission,
  readKey: ReadKey,
): Caller | Promise<Caller> {
  const authorization = readKey(headers);
  return authorization === undefined && isFromDashboard(headers)
    ? sessions.authenticate(headers, permission)
    : authenticator.authenticate(authorization);
}

async function letIn(
  gate: Gate,
  request: FastifyRequest,
  attempt: Caller | Promise<Caller>,
  permission: Permission,
): Promise<void> {
  const caller = await countFailure(gate, request, attempt);
  request.caller = caller;
  // Before the scope check, so that requests without the required scope are limited too.
  await gate.keyRequests?.(request);
  requireScope(caller, permission);
}

/** Waits for an attempt to authenticate. A 401 counts as a failed attempt from the caller's address. */
export async function countFailure<T>(
  gate: Gate,
  request: FastifyRequest,
  attempt: T | Promise<T>,
): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    if (error instanceof Failure && errorTable[error.code].status === 401) {
      await gate.failedAttempts(request);
    }
    throw error;
  }
}

export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new Error('this route has no requireKey hook');
  return request.caller;
}
