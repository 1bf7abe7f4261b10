import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Trace } from '../core/trace.ts';
import { fail } from '../errors.ts';
import type { Appended } from '../ingest/admission.ts';
import { limits } from '../limits.ts';
import type { TraceReader } from '../store/trace-reader.ts';
import type { IdempotentRequest } from '../store/trace-writer.ts';
import { hashOf } from './decoding/decode.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set if the request has an Idempotency-Key. */
    bodyHash: string | null;
  }
}

/** What is hashed before the uncompressed body; null if the request has no Idempotency-Key. */
export function hashPrefixOf({ headers, routeOptions }: FastifyRequest): string | null {
  if (headers['idempotency-key'] === undefined) return null;
  // The same body at another path is a different request.
  return `${routeOptions.schema?.operationId ?? ''}\n`;
}

/** Hashes the uncompressed body if the request may be stored only once. */
export function noteBody(request: FastifyRequest, body: Buffer): void {
  const prefix = hashPrefixOf(request);
  if (prefix !== null) request.bodyHash = hashOf(prefix, body);
}

const visibleAscii = new RegExp(`^[\\x21-\\x7e]{1,${limits.idempotencyKeyCharsMax}}$`);

/** Identifies the request, so that a repetition is recognized; null if the caller sent no idempotency key. */
export function idempotentRequest(
  request: FastifyRequest,
  rejected: string | null = null,
): IdempotentRequest | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || !visibleAscii.test(key)) {
    const message = `must be 1 to ${limits.idempotencyKeyCharsMax} visible ASCII characters`;
    return fail('invalid_input', { errors: [{ field: 'Idempotency-Key', message }] });
  }
  if (request.bodyHash === null) throw new Error('the body was not hashed');
  return { keyHash: hash('sha256', key, 'base64url'), bodyHash: request.bodyHash, rejected };
}

/** The traces for the reply: those just stored, or those of the first request, which a header then marks as replayed. */
export function tracesToShow(
  reader: Pick<TraceReader, 'range'>,
  teamId: string,
  appended: Appended,
  reply: FastifyReply,
): readonly Trace[] | Promise<readonly Trace[]> {
  if (appended.kind === 'recorded') return appended.traces;
  reply.header('idempotent-replayed', 'true');
  return reader.range(teamId, appended);
}
