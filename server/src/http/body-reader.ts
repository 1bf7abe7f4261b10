import type { IncomingMessage } from 'node:http';
import { createGunzip } from 'node:zlib';
import type { FastifyRequest } from 'fastify';
import { Failure, fail } from '../errors.ts';
import { limits } from '../limits.ts';
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
      done(error, nothing);
      return;
    }
    const [first] = chunks;
    done(null, chunks.length === 1 && first ? first : Buffer.concat(chunks, bytes));
  }
}

const nothing = Buffer.alloc(0);

/** Decompresses gzip and counts each chunk before the next one: the size that the compressed body claims cannot be trusted. */
export async function unpackGzip(
  request: FastifyRequest,
  packed: Buffer,
  budget: BodyBudget,
): Promise<Buffer> {
  const { bodyLimit } = request.routeOptions;
  const pieces: Buffer[] = [];
  let bytes = 0;
  const unpacking = createGunzip({ chunkSize: limits.unpackChunkBytes });
  unpacking.end(packed);
  try {
    for await (const piece of unpacking as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > bodyLimit) fail('body_too_large');
      // The caller has disconnected.
      if (request.raw.socket.destroyed) fail('malformed_request');
      budget.add(request, piece.length);
      pieces.push(piece);
    }
  } catch (error) {
    throw error instanceof Failure ? error : new Failure('malformed_gzip');
  }
  budget.remove(request, packed.length);
  return Buffer.concat(pieces, bytes);
}
