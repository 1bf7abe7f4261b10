import { isUtf8 } from 'node:buffer';
import { createGunzip } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Failure, fail } from '../errors.ts';
import { limits } from '../limits.ts';
import type { BodyBudget } from './body-budget.ts';
import { noteBody } from './idempotency.ts';

/**
 * The only body this service reads is JSON in UTF-8, as it is or as gzip. A `__proto__` key becomes a plain
 * property here, which nothing reads.
 */
export function acceptOnlyJson(app: FastifyInstance, budget: BodyBudget): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const parse = (bytes: Buffer): void => {
      noteBody(request, bytes);
      done(null, parseJson(bytes));
    };
    try {
      switch (request.headers['content-encoding']?.toLowerCase() ?? 'identity') {
        case 'identity':
          // It may have come without a length.
          budget.resize(request, body.length);
          return parse(body as Buffer);
        case 'gzip':
          return void unpack(request, body as Buffer, budget)
            .then(parse)
            .catch(done);
        default:
          return fail('unsupported_media_type');
      }
    } catch (error) {
      done(error as Error);
    }
  });
}

/**
 * Unpacks piece by piece, up to the limit of the route, and counts each piece against the budget before the next: what the packed
 * body tells of its size may be a lie.
 */
async function unpack(
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
      // Nobody waits for it any more.
      if (request.raw.socket.destroyed) fail('malformed_request');
      budget.resize(request, packed.length + bytes);
      pieces.push(piece);
    }
  } catch (error) {
    throw error instanceof Failure ? error : new Failure('malformed_gzip');
  }
  budget.resize(request, bytes);
  return Buffer.concat(pieces);
}

function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) return fail('malformed_utf8');
  if (body.length === 0)
    return fail('malformed_json', { say: 'The body is empty; a JSON object was expected.' });
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    // The parser's own message quotes the text around the mistake, which may be a prompt.
    throw new Failure('malformed_json');
  }
}
