import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { CallerLeft, Failure, errorTable } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import { logRequest } from './reply-headers.ts';
import type { FailureLog } from './failure-log.ts';
import { fieldErrors, queryErrors } from './field-errors.ts';
import { parametersOf } from './strict-query.ts';

export const problemContentType = 'application/problem+json; charset=utf-8';

/** An RFC 9457 problem document, the format of every error reply. */
export function problemOf(failure: Failure, requestId: string) {
  const { code, details } = failure;
  const { status, title, say } = errorTable[code];
  return {
    type: `urn:tracetally:error:${code}`,
    title,
    status,
    detail: details.say ?? say,
    code,
    request_id: requestId,
    ...(details.errors ? { errors: details.errors } : {}),
  };
}

export function sendProblem(
  failures: FailureLog,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): FastifyReply {
  const problem = beginProblem(failures, request, reply, error);
  return reply.header('content-type', problemContentType).serializer(JSON.stringify).send(problem);
}

/** Logs a failed request, and sets the status and the headers of its reply. */
export function beginProblem(
  failures: FailureLog,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
) {
  const failure = failureOf(error, request);
  const problem = problemOf(failure, request.id);
  const { details, code } = failure;
  const route = request.routeOptions.url ?? null;
  reply.code(problem.status);
  const reason = isFailureOfService(problem.status) ? traceOf(failure) : undefined;
  if (!(failure instanceof CallerLeft) && failures.admit({ code, route, reason })) {
    const { logger } = failures;
    if (reason !== undefined) {
      logger.error({ request_id: request.id, code, reason }, 'request failed');
    }
    logRequest(logger, request, reply);
  }
  const retryAfterS = details.retryAfterS ?? errorTable[code].retryAfterS;
  if (retryAfterS !== undefined) reply.header('retry-after', String(retryAfterS));
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer');
  if (details.headers) reply.headers(details.headers);
  return problem;
}

/** A 501 is the caller's error: the request uses a part of HTTP that this service does not implement. */
function isFailureOfService(status: number): boolean {
  return status >= 500 && status !== 501;
}

/** Our codes for Fastify's errors. */
const frameworkCodes: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_BAD_URL: 'route_not_found',
  // The caller disconnected while sending the body.
  ECONNRESET: 'malformed_request',
};

function failureOf(error: unknown, request: FastifyRequest): Failure {
  if (error instanceof Failure) return error;
  const { code, validation, validationContext, message } = error as FastifyError;
  if (validation) {
    const errors =
      validationContext === 'querystring'
        ? queryErrors(validation, parametersOf(request.routeOptions.schema))
        : fieldErrors(validation, validationContext);
    return new Failure('invalid_input', { errors });
  }
  if (isOfLeftCaller(error as FastifyError)) return new CallerLeft();
  const known = frameworkCodes[code];
  return known ? new Failure(known) : new Failure('internal', { cause: error ?? message });
}

/** Whether a reply could not be sent completely because the caller has hung up. */
export function isOfLeftCaller({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ERR_STREAM_PREMATURE_CLOSE';
}

/** The cause as text for the log. It never contains a value that a caller sent. */
function traceOf({ code, details: { cause } }: Failure): string {
  if (cause instanceof Error) return cause.stack ?? cause.message;
  return typeof cause === 'string' ? cause : errorTable[code].say;
}
