import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { Failure, fail } from '../errors.ts';
import type { BodyBudget } from './body-budget.ts';

type Done = (error: Error | null, body: Buffer) => void;

/** Reads a body up to the limit of its route, and counts it against the budget while it arrives. */
export function readBody(
  request: FastifyRequest,
  payload: IncomingMessage,
  budget: BodyBudget,
  done: Done,
): void {
  const { bodyLimit } = request.routeOptions;
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Instead of removing the listeners, which takes longer.
  let isDone = false;

  if (Number(request.headers['content-length'] ?? 0) > bodyLimit) {
    done(new Failure('body_too_large'), nothing);
    return;
  }
  payload.on('data', onData);
  payload.on('end', onEnd);
  payload.on('error', onEnd);

  function onData(chunk: Buffer): void {
    if (isDone) return;
    bytes += chunk.length;
    try {
      if (bytes > bodyLimit) fail('body_too_large');
      budget.add(request, chunk.length);
    } catch (error) {
      onEnd(error as Error);
      return;
    }
    chunks.push(chunk);
  }

  function onEnd(error?: Error): void {
    if (isDone) return;
    isDone = true;
    if (error) {
      chunks.length = 0;
      done(error, nothing);
      return;
    }
    const [first] = chunks;
    const body = chunks.length === 1 && first ? first : Buffer.concat(chunks, bytes);
    // The listeners, and with them the chunks, live as long as the request.
    chunks.length = 0;
    done(null, body);
  }
}

const nothing = Buffer.alloc(0);
