import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { limits } from '../limits.ts';

/** One connection. */
interface Turns {
  /** The reply to the latest request that was started. */
  current: ServerResponse | null;
  /** Requests that arrived before that reply was sent. */
  waiting: [IncomingMessage, ServerResponse][];
  /** The connection is closing; requests that still arrive on it are not handled. */
  isClosing: boolean;
}

/**
 * Handles the requests of one connection one after the other. Without this, one packet of pipelined requests could create hundreds
 * of replies, all in memory until the peer reads them. A peer that pipelines too many requests is disconnected: Node.js cannot stop
 * parsing requests from a packet that has arrived, so the parsed requests must at least be freed soon. For a client that waits for
 * each reply the overhead is small: no listener, and one entry per connection.
 */
export function inTurns(handle: RequestListener): RequestListener {
  const bySocket = new WeakMap<Socket, Turns>();
  let waitingInAll = 0;

  function turnsOf(socket: Socket): Turns {
    let turns = bySocket.get(socket);
    if (!turns) {
      turns = { current: null, waiting: [], isClosing: false };
      bySocket.set(socket, turns);
    }
    return turns;
  }

  function start(request: IncomingMessage, response: ServerResponse, turns: Turns): void {
    turns.current = response;
    handle(request, response);
  }

  function wait(request: IncomingMessage, response: ServerResponse, turns: Turns): void {
    turns.waiting.push([request, response]);
    waitingInAll += 1;
    if (turns.waiting.length === 1) turns.current?.once('close', () => next(request.socket, turns));
  }

  function next(socket: Socket, turns: Turns): void {
    if (hasEnded(socket)) {
      end(turns);
      return;
    }
    const first = turns.waiting.shift();
    if (!first) return;
    waitingInAll -= 1;
    if (turns.waiting.length > 0) first[1].once('close', () => next(socket, turns));
    start(...first, turns);
  }

  function end(turns: Turns): void {
    waitingInAll -= turns.waiting.length;
    turns.waiting = [];
    turns.isClosing = true;
  }

  return (request, response) => {
    const turns = turnsOf(request.socket);
    const { current, waiting } = turns;
    if (turns.isClosing || hasEnded(request.socket)) {
      // Otherwise Node.js would create an error for each of them when the connection closes.
      request.destroyed = true;
    } else if ((current === null || current.closed) && waiting.length === 0) {
      start(request, response, turns);
    } else if (
      waiting.length < limits.pipelinedRequestsMax &&
      (waiting.length === 0 || waitingInAll < limits.pipelinedRequestsInAllMax)
    ) {
      wait(request, response, turns);
    } else {
      end(turns);
      disconnect(request.socket);
    }
  };
}

/** The peer has disconnected, or the last reply had `Connection: close`: later requests must not be handled. */
function hasEnded(socket: Socket): boolean {
  return socket.destroyed || socket.writableEnded;
}

/** Node.js creates an error for each request that it has parsed. Without stack traces this is much faster. */
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
