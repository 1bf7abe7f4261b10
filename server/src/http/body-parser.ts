import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '../core/clock.ts';
import { Failure, fail } from '../errors.ts';
import type { Pricing } from '../ingest/pricing.ts';
import { callerOf } from './auth.ts';
import type { BodyBudget } from './body-budget.ts';
import { readBody } from './body-reader.ts';
import { jsonIn, refuseOtlp } from './decoding/decode.ts';
import type { BodyCoding, BodyEncoding, BodyKind, DecodeJob } from './decoding/decode-job.ts';
import { DecodedBody } from './decoding/decoded-body.ts';
import { WaitingJob } from './decoding/waiting-job.ts';
import type { DecodingPool } from './decoding/decoding-pool.ts';
import { hashPrefixOf, noteBody } from './idempotency.ts';
import { asksForCosts, omittedPayloads } from './parameters.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What bodies of the route contain. Without it, they are small and decoded by the main thread. */
    takes?: BodyKind | 'metric';
  }
}

export const protobufContentType = 'application/x-protobuf';

export interface BodyDeps {
  bodyBudget: BodyBudget;
  decoding: DecodingPool;
  pricing: Pricing;
  priceMissingCosts: boolean;
  clock: Clock;
  bodyBytesMax: number;
  basePath: string;
}

/**
 * Accepts JSON in UTF-8, and other forms if a route takes them, uncompressed or compressed. The main thread decodes only small traces: what
 * another body costs depends on what is in it, so decoding threads do everything with it.
 */
export function acceptBodies(app: FastifyInstance, deps: BodyDeps): void {
  const { basePath } = deps;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', (request, payload, done) => {
    receive(request, payload, 'json', deps, done);
  });
  app.addContentTypeParser('application/x-ndjson', (request, payload, done) => {
    if (request.routeOptions.config.takes === 'litellm') {
      receive(request, payload, 'json', deps, done);
    } else done(new Failure('unsupported_media_type'));
  });
  app.addContentTypeParser(protobufContentType, (request, payload, done) => {
    if (takesOtlp(request)) receive(request, payload, 'protobuf', deps, done);
    else done(new Failure('unsupported_media_type', { say: otlpElsewhere(basePath) }));
  });
  // Without a body Fastify skips the parser, and validation would report an invalid body instead of a missing one.
  app.addHook('preValidation', ({ body, routeOptions }, _reply, done) => {
    if (body === undefined && routeOptions.schema?.body !== undefined) {
      fail('malformed_json', { say: 'The body is missing; a JSON object was expected.' });
    }
    done();
  });
}

/** Uncompressed traces up to this size are decoded on the main thread: that takes less time than handing them over. */
const smallBodyBytesMax = 64 * 1024;

type Done = (error: Error | null, body?: unknown) => void;

function receive(
  request: FastifyRequest,
  payload: IncomingMessage,
  encoding: BodyEncoding,
  deps: BodyDeps,
  done: Done,
): void {
  const { takes } = request.routeOptions.config;
  const coding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
  if (!isCoding(coding) || (takes === undefined && coding !== 'identity')) {
    done(new Failure('unsupported_media_type'));
    return;
  }
  readBody(request, payload, deps.bodyBudget, (error, body) => {
    if (error) return done(error);
    // Metrics are not stored, so they are not decoded either.
    if (takes === 'metric') return done(null, null);
    const isSmall = body.length <= smallBodyBytesMax && coding === 'identity';
    if (takes !== undefined && !(takes === 'trace' && isSmall)) {
      const job = jobOf(request, body, { kind: takes, encoding, coding }, deps);
      decode(request, job, deps).then((decoded) => done(null, decoded), done);
      return;
    }
    try {
      const parsed = jsonIn(body);
      refuseOtlp(parsed, deps.basePath);
      noteBody(request, body);
      done(null, parsed);
    } catch (problem) {
      done(problem as Error);
    }
  });
}

function jobOf(
  request: FastifyRequest,
  body: Buffer,
  form: Pick<DecodeJob, 'kind' | 'encoding' | 'coding'>,
  { clock, bodyBytesMax, basePath }: BodyDeps,
): DecodeJob {
  const { omit } = request.query as { omit?: unknown };
  return {
    ...form,
    bytes: ownBytes(body),
    bodyBytesMax: request.routeOptions.bodyLimit,
    traceBytesMax: bodyBytesMax,
    teamId: callerOf(request).teamId,
    nowUs: clock(),
    basePath,
    omit: typeof omit === 'string' ? [...omittedPayloads(omit)] : [],
    hashPrefix: hashPrefixOf(request),
    prices: null,
  };
}

async function decode(
  request: FastifyRequest,
  job: DecodeJob,
  { bodyBudget, decoding, pricing, priceMissingCosts }: BodyDeps,
): Promise<DecodedBody> {
  const { kind, teamId } = job;
  const waiting = new WaitingJob(job, request.raw.socket);
  try {
    const isPosted = kind === 'trace' || kind === 'batch';
    const isPriced = !isPosted || priceMissingCosts || asksForCosts(request.query);
    job.prices = isPriced ? await pricing.ownPrices() : null;
    const decoded = new DecodedBody(await decoding.decode(teamId, () => waiting.take()));
    request.bodyHash = decoded.bodyHash;
    bodyBudget.remove(request, request.bodyBytes);
    bodyBudget.add(request, decoded.bytes);
    return decoded;
  } finally {
    waiting.take();
  }
}

/** A body in a buffer of its own, which can be moved to another thread. Small ones share the buffer of a socket. */
function ownBytes(body: Buffer): Uint8Array<ArrayBuffer> {
  const isOwn = body.byteLength === body.buffer.byteLength && body.buffer instanceof ArrayBuffer;
  return isOwn ? (body as Uint8Array<ArrayBuffer>) : new Uint8Array(body);
}

const codings: readonly BodyCoding[] = ['identity', 'gzip', 'zstd'];

function isCoding(coding: string): coding is BodyCoding {
  return (codings as readonly string[]).includes(coding);
}

function takesOtlp({ routeOptions }: FastifyRequest): boolean {
  return ['span', 'log', 'metric'].includes(routeOptions.config.takes ?? '');
}

function otlpElsewhere(basePath: string): string {
  return `This path accepts only JSON. OpenTelemetry data belongs to ${basePath}/v1/traces and ${basePath}/v1/logs.`;
}
