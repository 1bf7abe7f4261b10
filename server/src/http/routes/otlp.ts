import type { FastifyReply, FastifyRequest } from 'fastify';
import { limits } from '../../limits.ts';
import { bearerOrApiKey, callerOf, requireKey } from '../auth.ts';
import { protobufContentType } from '../body-parser.ts';
import { jsonContentType } from '../content-type.ts';
import type { DecodedBody } from '../decoding/decoded-body.ts';
import { beginProblem } from '../problem.ts';
import { exportResponse, rejectionText, statusMessage } from '../protocols/otlp-reply.ts';
import type { Encoding, PartialSuccess, SignalKind } from '../protocols/otlp-reply.ts';
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
        config: { takes: kind },
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
  { writes, signalLog }: RouteDeps,
): Promise<PartialSuccess | null> {
  const body = request.body as DecodedBody;
  const counts = await storeCalls(body, callerOf(request).teamId, writes);
  signalLog.add(request.id, counts);
  const { total, rejected, reasons } = body.signals;
  if (rejected === 0) return null;
  return { rejected, reason: rejectionText(kind, total, rejected, reasons) };
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
