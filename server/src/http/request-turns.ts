import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { limits } from '../limits.ts';

/** Requests that arrived on a connection while an earlier one is still being answered. */
interface Turns {
  waiting: [IncomingMessage, ServerResponse][];
  /** The connection ends, and nothing that still arrives on it is carried out. */
  isClosing: boolean;
}

/**
 * Handles the requests of one connection one after the other. Without this, one packet of pipelined requests makes hundreds of
 * replies, all held in memory until the peer reads them. A peer that pipelines more than may wait is disconnected: Node.js has no way to
 * stop reading requests out of a packet that has arrived, so what it makes of them must at least be gone soon.
 */
export function inTurns(handle: RequestListener): RequestListener {
  const bySocket = new WeakMap<Socket, Turns>();
  let waitingInAll = 0;

  function start(request: IncomingMessage, response: ServerResponse, turns: Turns): void {
    response.on('close', () => next(request.socket, turns));
    handle(request, response);
  }

  function next(socket: Socket, turns: Turns): void {
    // The peer has gone, or the last reply said `Connection: close`: nothing behind it may be carried out.
    if (socket.destroyed || socket.writableEnded) {
      end(turns);
      return;
    }
    const first = turns.waiting.shift();
    if (!first) {
      bySocket.delete(socket);
      return;
    }
    waitingInAll -= 1;
    start(...first, turns);
  }

  function end(turns: Turns): void {
    waitingInAll -= turns.waiting.length;
    turns.waiting = [];
    turns.isClosing = true;
  }

  return (request, response) => {
    const turns = bySocket.get(request.socket);
    if (!turns) {
      const own: Turns = { waiting: [], isClosing: false };
      bySocket.set(request.socket, own);
      start(request, response, own);
      return;
    }
    if (turns.isClosing) {
      // Else Node.js would end each of them with an error of its own when the connection closes.
      request.destroyed = true;
      return;
    }
    const { waiting } = turns;
    if (
      waiting.length < limits.pipelinedRequestsMax &&
      (waiting.length === 0 || waitingInAll < limits.pipelinedRequestsInAllMax)
    ) {
      waiting.push([request, response]);
      waitingInAll += 1;
      return;
    }
    end(turns);
    disconnect(request.socket);
  };
}

/** Node.js then makes an error for each request that it has read, and their stack traces would take most of the time. */
function disconnect(socket: Socket): void {
  const usual = Error.stackTraceLimit;
  socket.prependOnceListener('close', () => {
    Error.stackTraceLimit = 0;
  });
  socket.once('close', () => {
    Error.stackTraceLimit = usual;
  });
  socket.destroy();
}
