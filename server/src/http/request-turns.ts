import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { limits } from '../limits.ts';

/** Requests that arrived on a connection while an earlier one is still being answered. */
interface Turns {
  waiting: [IncomingMessage, ServerResponse][];
  /** More came than may wait: those are not handled, and the connection ends with the last reply. */
  isClosing: boolean;
}

/**
 * Handles the requests of one connection one after the other. Without this, one packet of pipelined requests makes hundreds of
 * replies, all held in memory until the peer reads them. A peer that pipelines more than may wait gets replies to the first ones
 * and `Connection: close`; HTTP clients then send the rest again on a new connection.
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
      waitingInAll -= turns.waiting.length;
      turns.waiting = [];
      turns.isClosing = true;
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

  return (request, response) => {
    const turns = bySocket.get(request.socket);
    if (!turns) {
      const own: Turns = { waiting: [], isClosing: false };
      bySocket.set(request.socket, own);
      start(request, response, own);
      return;
    }
    const { waiting } = turns;
    if (
      !turns.isClosing &&
      waiting.length < limits.pipelinedRequestsMax &&
      (waiting.length === 0 || waitingInAll < limits.pipelinedRequestsInAllMax)
    ) {
      waiting.push([request, response]);
      waitingInAll += 1;
      return;
    }
    turns.isClosing = true;
    const last = waiting.at(-1);
    // Node then closes the connection behind this reply.
    if (last) last[1].shouldKeepAlive = false;
  };
}
