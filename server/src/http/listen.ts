import { createServer } from 'node:net';
import type { AddressInfo, ListenOptions, Server } from 'node:net';
import type { FastifyListenOptions } from 'fastify';
import { limits } from '../limits.ts';
import type { App } from './app-type.ts';

export interface Listening {
  port: number;
  /** Takes no more connections; resolves when those that it took have ended. The app's own socket is the app's to close. */
  stop(): Promise<void>;
}

/**
 * Listens with several sockets at one address. Node.js accepts one connection per socket and turn of the event loop: with a
 * single one, a flood of connections would keep everyone else's waiting for seconds, a load balancer's health check among them.
 */
export async function listen(app: App, host: string, port: number): Promise<Listening> {
  // Not every system lets several sockets of one process share an address and divides the connections between them.
  const listeners = process.platform === 'linux' ? limits.listenersMax : 1;
  // Sockets that share an address would also share it with another server, so first it must be free.
  if (port !== 0) await close(await open({ host, port }));
  const options: ListenOptions = {
    host,
    port,
    backlog: limits.connectionsWaitingMax,
    reusePort: listeners > 1,
  };
  // It hands all of them on to Node, though its types do not know each.
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
      // From here on as if Node's HTTP server had accepted it.
      other.on('connection', (socket) => app.server.emit('connection', socket));
      others.push(other);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { port: bound, stop };
}

function open(options: ListenOptions): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => resolve(server));
  });
}

/** A connection that cannot be accepted, for want of file handles for example, must not end the process. */
function surviveAcceptErrors(server: Server): void {
  server.on('error', () => {});
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => void server.close(() => resolve()));
}
