import type { FastifyReply, FastifyRequest } from 'fastify';
import { fail } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { bearerOrApiKey, callerOf, requireKey } from '../auth.ts';
import { protobufContentType } from '../body-parser.ts';
import { jsonContentType } from '../content-type.ts';
import { beginProblem } from '../problem.ts';
import { MalformedOtlpJson, readJson } from '../protocols/otlp-json.ts';
import { readProtobuf } from '../protocols/otlp-protobuf.ts';
import { exportResponse, rejectionText, statusMessage } from '../protocols/otlp-reply.ts';
import type { Encoding, PartialSuccess, SignalKind } from '../protocols/otlp-reply.ts';
import type { Signals } from '../protocols/otlp-signals.ts';
import { MalformedProtobuf } from '../protocols/protobuf-reader.ts';
import type { Route, RouteDeps } from '../route.ts';
import { OtlpBody, otlpFailures, otlpReply } from '../otlp-schemas.ts';
import { storeCalls } from '../store-calls.ts';

const endpoints = [
  {
    path: '/v1/traces',
    kind: 'span',
    operationId: 'exportSpans',
    summary: 'Record the model calls among OpenTelemetry spans',
  },
  {
    path: '/v1/logs',
    kind: 'log',
    operationId: 'exportLogs',
    summary: 'Record the model calls among OpenTelemetry log records',
  },
  {
    path: '/v1/metrics',
    kind: 'metric',
    operationId: 'exportMetrics',
    summary: 'Accept OpenTelemetry metrics without storing them: they repeat the same calls',
  },
] as const;

/** OTLP/HTTP: a 200 means that every model call in the request is on disk, readable and counted, unless the reply says it was rejected. */
export const otlp: Route = (app, deps) => {
  const { gate, failures, bodyBytesMax } = deps;
  for (const { path, kind, operationId, summary } of endpoints) {
    app.post(
      path,
      {
        bodyLimit: Math.max(limits.batchBodyBytesMax, bodyBytesMax),
        config: { takesProtobuf: true },
        onRequest: requireKey(gate, 'ingest', bearerOrApiKey),
        errorHandler: (error, request, reply) => {
          const { status, detail } = beginProblem(failures, request, reply, error);
          const answered = otherStatuses[status] ?? status;
          if (answered === 503) reply.header('retry-after', reply.getHeader('retry-after') ?? '5');
          send(request, reply.code(answered), statusMessage(encodingOf(request), answered, detail));
        },
        schema: {
          operationId,
          summary,
          tags: ['opentelemetry'],
          body: OtlpBody,
          response: { 200: otlpReply, ...otlpFailures },
        },
      },
      async (request, reply) => {
        const encoding = encodingOf(request);
        const partial = kind === 'metric' ? null : await storeSignals(request, kind, deps);
        return send(request, reply, exportResponse(encoding, kind, partial));
      },
    );
  }
};

/** Exporters do not retry these, although a 507 may pass; and OTLP has one status for every kind of bad data. */
const otherStatuses: Readonly<Record<number, number>> = { 422: 400, 507: 503 };

async function storeSignals(
  request: FastifyRequest,
  kind: Exclude<SignalKind, 'metric'>,
  { writes, pricing, clock, signalLog }: RouteDeps,
): Promise<PartialSuccess | null> {
  const signals = readSignals(request, kind);
  const { teamId } = callerOf(request);
  const { reasons, ...counts } = await storeCalls(signals, { teamId, writes, pricing, clock });
  signalLog.add(request.id, counts);
  const { rejected } = counts;
  if (rejected === 0) return null;
  return { rejected, reason: rejectionText(kind, signals.count, rejected, reasons) };
}

function readSignals({ body }: FastifyRequest, kind: 'span' | 'log'): Signals {
  try {
    return Buffer.isBuffer(body) ? readProtobuf(body, kind) : readJson(body, kind);
  } catch (error) {
    if (error instanceof MalformedProtobuf) {
      fail('malformed_request', { say: `The body is not valid OTLP protobuf: ${error.message}.` });
    }
    if (error instanceof MalformedOtlpJson) {
      fail('malformed_json', { say: `The body is not valid OTLP JSON: ${error.message}.` });
    }
    throw error;
  }
}

function encodingOf({ headers }: FastifyRequest): Encoding {
  const isProtobuf = headers['content-type']?.toLowerCase().startsWith(protobufContentType);
  return isProtobuf === true ? 'protobuf' : 'json';
}

function send(request: FastifyRequest, reply: FastifyReply, body: Buffer | string): FastifyReply {
  const isProtobuf = encodingOf(request) === 'protobuf';
  return reply
    .header('content-type', isProtobuf ? protobufContentType : jsonContentType)
    .send(body);
}
