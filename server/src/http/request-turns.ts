import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { limits } from '../limits.ts';

/** One connection. */
interface Turns {
  isBusy: boolean;
  /** Requests that arrived before the current reply was sent. */
  waiting: [IncomingMessage, ServerResponse][];
  /** The connection is closing; requests that still arrive on it are not handled. */
  isClosing: boolean;
  /** Listens for the 'close' of the current reply. It holds neither the reply nor its request. */
  onClose(): void;
}

/**
 * Handles the requests of one connection one after the other. Without this, one packet of pipelined requests creates hundreds of
 * replies, all held in memory until the peer reads them. A peer that pipelines more than may wait is disconnected. Everything is created
 * once per connection: a closure and an entry per request would double the cost of garbage collection.
 */
export function inTurns(handle: RequestListener): RequestListener {
  const bySocket = new WeakMap<Socket, Turns>();
  let waitingInAll = 0;

  function open(socket: Socket): Turns {
    const onClose = (): void => next(socket, turns);
    const turns: Turns = { isBusy: false, waiting: [], isClosing: false, onClose };
    bySocket.set(socket, turns);
    return turns;
  }

  function start(request: IncomingMessage, response: ServerResponse, turns: Turns): void {
    turns.isBusy = true;
    response.on('close', turns.onClose);
    handle(request, response);
  }

  function next(socket: Socket, turns: Turns): void {
    turns.isBusy = false;
    if (hasEnded(socket)) {
      end(turns);
      return;
    }
    const first = turns.waiting.shift();
    if (!first) return;
    waitingInAll -= 1;
    start(...first, turns);
  }

  function end(turns: Turns): void {
    waitingInAll -= turns.waiting.length;
    turns.waiting = [];
    turns.isClosing = true;
  }

  return (request, response) => {
    const turns = bySocket.get(request.socket) ?? open(request.socket);
    const { waiting } = turns;
    if (turns.isClosing || hasEnded(request.socket)) {
      // Otherwise Node.js would create an error for each of them when the connection closes.
      request.destroyed = true;
    } else if (!turns.isBusy) {
      start(request, response, turns);
    } else if (
      waiting.length < limits.pipelinedRequestsMax &&
      (waiting.length === 0 || waitingInAll < limits.pipelinedRequestsInAllMax)
    ) {
      waiting.push([request, response]);
      waitingInAll += 1;
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
