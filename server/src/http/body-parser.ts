import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Failure, fail } from '../errors.ts';
import { limits } from '../limits.ts';
import type { BodyBudget } from './body-budget.ts';
import { readBody, unpackGzip } from './body-reader.ts';
import { noteBody } from './idempotency.ts';
import { hasMoreValues } from './json-values.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route also accepts protobuf. */
    takesProtobuf?: boolean;
    /** The route parses the text of a JSON body itself. */
    takesText?: boolean;
  }
}

export const protobufContentType = 'application/x-protobuf';

/**
 * Accepts only JSON in UTF-8, uncompressed or as gzip, and protobuf if a route takes it. A `__proto__` key becomes an ordinary property,
 * which nothing reads.
 */
export function acceptBodies(app: FastifyInstance, budget: BodyBudget, basePath: string): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', (request, payload, done) => {
    const { takesText } = request.routeOptions.config;
    readAndParse(request, payload, budget, takesText === true ? asIs : parseJson, done);
  });
  app.addContentTypeParser('application/x-ndjson', (request, payload, done) => {
    const { takesText } = request.routeOptions.config;
    if (takesText === true) readAndParse(request, payload, budget, asIs, done);
    else done(new Failure('unsupported_media_type'));
  });
  app.addContentTypeParser(protobufContentType, (request, payload, done) => {
    const { takesProtobuf } = request.routeOptions.config;
    if (takesProtobuf === true) readAndParse(request, payload, budget, asIs, done);
    else done(new Failure('unsupported_media_type', { say: otlpElsewhere(basePath) }));
  });
  // Without a body Fastify skips the parser, and validation would report an invalid body instead of a missing one.
  app.addHook('preValidation', ({ body, routeOptions }, _reply, done) => {
    if (body === undefined && routeOptions.schema?.body !== undefined) {
      fail('malformed_json', { say: 'The body is missing; a JSON object was expected.' });
    }
    // An exporter whose URL lacks the base path.
    if (isOtlp(body) && routeOptions.config.takesProtobuf !== true) {
      fail('invalid_input', { errors: [{ field: 'body', message: otlpField(basePath) }] });
    }
    done();
  });
}

const codings = ['identity', 'gzip'];
const asIs = (bytes: Buffer): Buffer => bytes;

function readAndParse(
  request: FastifyRequest,
  payload: IncomingMessage,
  budget: BodyBudget,
  parse: (bytes: Buffer) => unknown,
  done: (error: Error | null, body?: unknown) => void,
): void {
  const coding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
  if (!codings.includes(coding)) {
    done(new Failure('unsupported_media_type'));
    return;
  }
  const finish = (bytes: Buffer): void => {
    noteBody(request, bytes);
    done(null, parse(bytes));
  };
  readBody(request, payload, budget, (error, body) => {
    if (error) return done(error);
    if (coding === 'gzip') return void unpackGzip(request, body, budget).then(finish).catch(done);
    try {
      finish(body);
    } catch (problem) {
      done(problem as Error);
    }
  });
}

function isOtlp(body: unknown): boolean {
  return (
    typeof body === 'object' && body !== null && ('resourceSpans' in body || 'resourceLogs' in body)
  );
}

function otlpElsewhere(basePath: string): string {
  return `This path accepts only JSON. OpenTelemetry data belongs to ${basePath}/v1/traces and ${basePath}/v1/logs.`;
}

function otlpField(basePath: string): string {
  return `must be a trace; OpenTelemetry data belongs to ${basePath}/v1/traces and ${basePath}/v1/logs`;
}

function parseJson(body: Buffer): unknown {
  const text = checkedText(body);
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the text around the error, which may be part of a prompt.
    throw new Failure('malformed_json');
  }
}

/** The text of a body that is valid UTF-8, is not empty, and has few enough values to be parsed. */
export function checkedText(body: Buffer): string {
  if (!isUtf8(body)) return fail('malformed_utf8');
  if (body.length === 0)
    return fail('malformed_json', { say: 'The body is empty; a JSON object was expected.' });
  if (hasMoreValues(body, limits.bodyValuesMax)) {
    return fail('body_too_large', {
      say: `The body contains more than ${limits.bodyValuesMax} JSON values.`,
    });
  }
  return body.toString('utf8');
}
