import { isUtf8 } from 'node:buffer';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Failure, fail } from '../errors.ts';
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

const gunzipAsync = promisify(gunzip);

/**
 * Unpacks in a thread of its own, up to the limit of the route. The last bytes of gzip tell the size; a lie there costs
 * no more than the few bodies that are being unpacked at the same time.
 */
async function unpack(
  request: FastifyRequest,
  packed: Buffer,
  budget: BodyBudget,
): Promise<Buffer> {
  const { bodyLimit } = request.routeOptions;
  const toldBytes = packed.length < 4 ? 0 : packed.readUInt32LE(packed.length - 4);
  budget.resize(request, packed.length + Math.min(toldBytes, bodyLimit));
  try {
    const bytes = await gunzipAsync(packed, { maxOutputLength: bodyLimit });
    budget.resize(request, bytes.length);
    return bytes;
  } catch (error) {
    if (error instanceof Failure) throw error;
    const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw new Failure(isTooLarge ? 'body_too_large' : 'malformed_gzip');
  }
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
