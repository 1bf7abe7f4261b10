import { randomBytes } from 'node:crypto';
import type { RequestListener, Server } from 'node:http';
import { LogController } from 'fastify';
import type { FastifyBaseLogger, FastifyHttpOptions, FastifyRequest } from 'fastify';
import { limits } from '../limits.ts';
import { answerBrokenRequest } from './client-error.ts';
import { decodablePath } from './decodable-path.ts';
import type { FailureLog } from './failure-log.ts';
import { createServer } from './node-http.ts';
import { beginReply } from './reply-headers.ts';
import { isOfLeftCaller, sendProblem } from './problem.ts';
import { inTurns } from './request-turns.ts';

export interface ServerSettings {
  bodyBytesMax: number;
  /** Addresses or networks whose `X-Forwarded-For` is trusted, separated by commas. */
  trustProxy: string | false;
  logger: FastifyBaseLogger;
}

/** The options of Fastify and Node's HTTP server. */
export function serverOptions({ bodyBytesMax, trustProxy }: ServerSettings, failures: FailureLog) {
  const nextRequestId = requestIds();
  return {
    // We log requests ourselves. Fastify's own lines would contain URLs and add a listener to every reply.
    logger: false,
    logController: new BrokenReplies(failures),
    genReqId: nextRequestId,
    trustProxy,
    bodyLimit: bodyBytesMax,
    serverFactory: openServer,
    // A stopping service still answers requests; /readyz reports that it is stopping.
    return503OnClosing: false,
    // An id that is too long gets the same 404 as any other unknown id.
    routerOptions: { maxParamLength: limits.headerBytesMax },
    rewriteUrl: ({ url }) => decodablePath(url ?? ''),
    // Hooks do not run for a request target without a path.
    frameworkErrors: (error, request, reply) => {
      beginReply(request, reply);
      void sendProblem(failures, request, reply, error);
    },
    clientErrorHandler: (error, socket) =>
      answerBrokenRequest(error, socket, nextRequestId(), failures),
  } satisfies FastifyHttpOptions<Server>;
}

function openServer(handle: RequestListener): Server {
  const options = {
    requestTimeout: limits.requestTimeoutMs,
    headersTimeout: limits.headersTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.timeoutCheckIntervalMs,
    maxHeaderSize: limits.headerBytesMax,
    // We reject a request without Host ourselves, with a problem document.
    requireHostHeader: false,
  };
  return createServer(options, inTurns(handle)).setTimeout(limits.idleSocketTimeoutMs);
}

/** If a reply fails after its status was sent, only Fastify's log controller learns of it. */
class BrokenReplies extends LogController {
  readonly #failures: FailureLog;

  constructor(failures: FailureLog) {
    super({ disableRequestLogging: true });
    this.#failures = failures;
  }

  override streamError(error: NodeJS.ErrnoException, request: FastifyRequest): void {
    if (isOfLeftCaller(error)) return;
    const reason = error.stack ?? error.message;
    const route = request.routeOptions.url ?? null;
    if (!this.#failures.admit({ code: 'internal', route, reason })) return;
    this.#failures.logger.error(
      { request_id: request.id, reason },
      'a reply could not be sent completely',
    );
  }
}

/** Ids that are not repeated after a restart: a random part per process, then a counter. */
function requestIds(): () => string {
  const process = randomBytes(6).toString('hex');
  let count = 0;
  return () => `${process}-${(++count).toString(36)}`;
}
