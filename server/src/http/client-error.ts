import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Failure } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import type { FailureLog } from './failure-log.ts';
import { STATUS_CODES } from './node-http.ts';
import { problemContentType, problemOf } from './problem.ts';

/** Errors of Node's parser, before a request object exists. */
const codes: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'body_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/** Replies to an invalid HTTP request with a problem document like any other, then closes the connection. */
export function answerBrokenRequest(
  error: NodeJS.ErrnoException,
  socket: Socket,
  requestId: string,
  failures: FailureLog,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  // Invalid data after a request that is still in progress: its reply is sent, and then the connection is closed.
  const pending = Reflect.get(socket, '_httpMessage') as ServerResponse | null | undefined;
  if (pending?.req.complete) {
    pending.once('close', () => socket.destroySoon());
    return;
  }
  const problem = problemOf(new Failure(codes[error.code ?? ''] ?? 'malformed_request'), requestId);
  const { status, code } = problem;
  if (failures.admit({ code, route: null })) {
    failures.logger.info({ request_id: requestId, status, code }, 'invalid HTTP request');
  }
  const body = JSON.stringify(problem);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n` +
      `content-type: ${problemContentType}\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n` +
      `x-request-id: ${requestId}\r\n` +
      `connection: close\r\n\r\n${body}`,
  );
  // A peer that does not read the reply must not keep the socket open.
  socket.destroySoon();
}
