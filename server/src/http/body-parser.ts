import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { Failure, fail } from '../errors.ts';
import { limits } from '../limits.ts';
import type { BodyBudget } from './body-budget.ts';
import { readBody, unpackGzip } from './body-reader.ts';
import { noteBody } from './idempotency.ts';
import { hasMoreValues } from './json-values.ts';

/** Accepts only JSON in UTF-8, uncompressed or as gzip. A `__proto__` key becomes an ordinary property, which nothing reads. */
export function acceptOnlyJson(app: FastifyInstance, budget: BodyBudget): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', (request, payload, done) => {
    const coding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
    if (!codings.includes(coding)) {
      done(new Failure('unsupported_media_type'));
      return;
    }
    const parse = (bytes: Buffer): void => {
      noteBody(request, bytes);
      done(null, parseJson(bytes));
    };
    readBody(request, payload, budget, (error, body) => {
      if (error) return done(error);
      if (coding === 'gzip') return void unpackGzip(request, body, budget).then(parse).catch(done);
      try {
        parse(body);
      } catch (problem) {
        done(problem as Error);
      }
    });
  });
  // Without a body Fastify skips the parser, and validation would report an invalid body instead of a missing one.
  app.addHook('preValidation', ({ body, routeOptions }, _reply, done) => {
    if (body === undefined && routeOptions.schema?.body !== undefined) {
      fail('malformed_json', { say: 'The body is missing; a JSON object was expected.' });
    }
    done();
  });
}

const codings = ['identity', 'gzip'];

function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) return fail('malformed_utf8');
  if (body.length === 0)
    return fail('malformed_json', { say: 'The body is empty; a JSON object was expected.' });
  if (hasMoreValues(body, limits.bodyValuesMax)) {
    return fail('body_too_large', {
      say: `The body contains more than ${limits.bodyValuesMax} JSON values.`,
    });
  }
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    // The parser's own message quotes the text around the error, which may be part of a prompt.
    throw new Failure('malformed_json');
  }
}
