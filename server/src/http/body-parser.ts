import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { Failure, fail } from '../errors.ts';

/**
 * The only body this service reads is JSON in UTF-8, without a content encoding. A `__proto__` key becomes a plain
 * property here, which nothing reads.
 */
export function acceptOnlyJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      const encoding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
      if (encoding !== 'identity') fail('unsupported_media_type');
      done(null, parseJson(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
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
