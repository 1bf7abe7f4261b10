import { createServer } from 'node:net';
import type { AddressInfo, ListenOptions, Server } from 'node:net';
import type { FastifyListenOptions } from 'fastify';
import { limits } from '../limits.ts';
import type { App } from './route.ts';

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
  // Sockets that share an address would also share it with another server, so first it must be free.
  if (port !== 0) await close(await open({ host, port }));
  const options: ListenOptions = {
    host,
    port,
    backlog: limits.connectionsWaitingMax,
    reusePort: true,
  };
  // It hands all of them on to Node, though its types do not know each.
  await app.listen(options as FastifyListenOptions);
  const { address, port: bound } = app.server.address() as AddressInfo;
  const others: Server[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(others.map(close));
  };
  try {
    for (let i = 1; i < limits.listenersMax; i++) {
      const other = await open({ ...options, host: address, port: bound });
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

function close(server: Server): Promise<void> {
  return new Promise((resolve) => void server.close(() => resolve()));
}
