import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, ListenOptions, Server } from 'node:net';
import type { FastifyListenOptions } from 'fastify';
import { limits } from '../limits.ts';
import type { App } from './app-type.ts';

export interface Listening {
  port: number;
  /** Stops accepting connections; resolves when the accepted ones have ended. The app closes its own socket. */
  stop(): Promise<void>;
}

/**
 * Listens on one address with several sockets. Node.js accepts one connection per socket per turn of the event loop. With a
 * single socket, a flood of connections would delay all others for seconds, including a load balancer's health checks.
 */
export async function listen(app: App, host: string, port: number): Promise<Listening> {
  // Other systems may not let several sockets share an address, or may not distribute connections between them.
  const listeners = process.platform === 'linux' ? limits.listenersMax : 1;
  // Sockets that share an address would also share it with another server, so check first that it is free.
  if (port !== 0) await close(await open({ host, port }));
  const options: ListenOptions = {
    host,
    port,
    backlog: limits.connectionsWaitingMax,
    reusePort: listeners > 1,
  };
  // Fastify passes all options to Node, but its types do not include all of them.
  await app.listen(options as FastifyListenOptions);
  surviveAcceptErrors(app.server);
  const { address, port: bound } = app.server.address() as AddressInfo;
  const others: Server[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(others.map(close));
  };
  try {
    for (let i = 1; i < listeners; i++) {
      const other = await open({ ...options, host: address, port: bound });
      surviveAcceptErrors(other);
      // From here on it is handled as if Node's HTTP server had accepted it.
      other.on('connection', (socket) => app.server.emit('connection', socket));
      others.push(other);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { port: bound, stop };
}

async function open(options: ListenOptions): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }).listen(options);
  await once(server, 'listening');
  return server;
}

/** A connection that cannot be accepted, for example because there are no free file descriptors, must not end the process. */
function surviveAcceptErrors(server: Server): void {
  server.on('error', () => {});
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => void server.close(() => resolve()));
}
