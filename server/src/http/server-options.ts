import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import { LogController } from 'fastify';
import type { FastifyBaseLogger, FastifyHttpOptions, FastifyRequest } from 'fastify';
import { limits } from '../limits.ts';
import { answerBrokenRequest } from './client-error.ts';
import { logRequest, setCommonHeaders } from './every-reply.ts';
import { sendProblem } from './problem.ts';

export interface ServerSettings {
  bodyBytesMax: number;
  /** Addresses or networks whose `X-Forwarded-For` is believed, with commas between. */
  trustProxy: string | false;
  logger: FastifyBaseLogger;
}

/** How Fastify and Node's HTTP server are set up. */
export function serverOptions({ bodyBytesMax, trustProxy, logger }: ServerSettings) {
  const nextRequestId = requestIds();
  return {
    loggerInstance: logger,
    logController: new QuietLog({ disableRequestLogging: true }),
    // One logger for all: a child for each request costs more than its few lines, which name the request themselves.
    childLoggerFactory: (parent: FastifyBaseLogger) => parent,
    genReqId: nextRequestId,
    trustProxy,
    bodyLimit: bodyBytesMax,
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.idleSocketTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    http: {
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: limits.timeoutCheckIntervalMs,
      maxHeaderSize: limits.headerBytesMax,
      // We refuse a request without Host ourselves, with a problem document.
      requireHostHeader: false,
    },
    // A stopping service still answers what reaches it; /readyz tells that it stops.
    return503OnClosing: false,
    // An id of any length that fits into the request line is just an id that does not exist.
    routerOptions: { maxParamLength: limits.headerBytesMax },
    // No hook runs for a path that cannot be decoded.
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(request, reply);
      void sendProblem(request, reply, error);
      logRequest(request, reply);
    },
    clientErrorHandler: (error, socket) =>
      answerBrokenRequest(error, socket, nextRequestId(), logger),
    ajv: {
      // Fastify's defaults would turn null into "" and "12" into 12.
      customOptions: {
        coerceTypes: false,
        removeAdditional: false,
        useDefaults: false,
        allErrors: true,
        allowUnionTypes: true,
        keywords: ['openapi'],
      },
    },
  } satisfies FastifyHttpOptions<Server>;
}

/** Fastify's own lines would name URLs and repeat ours. Only a reply that broke off is news from it. */
class QuietLog extends LogController {
  override streamError(error: NodeJS.ErrnoException, request: FastifyRequest): void {
    if (error.code === 'ERR_STREAM_PREMATURE_CLOSE') return;
    request.log.error(
      { request_id: request.id, reason: error.stack ?? error.message },
      'a reply broke off',
    );
  }
}

/** Ids that no restart repeats: a random part a process, then a count. */
function requestIds(): () => string {
  const process = randomBytes(6).toString('hex');
  let count = 0;
  return () => `${process}-${(++count).toString(36)}`;
}
