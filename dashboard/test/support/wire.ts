import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A line between the browser and the server on which every byte of the requests is heard. */
export interface Wire {
  /** Where the browser finds the server, base path included. */
  url: string;
  /** All that was sent to the server. */
  sent(): string;
  close(): Promise<void>;
}

export async function openWire(target: string): Promise<Wire> {
  const { hostname, port, pathname } = new URL(target);
  const pieces: Buffer[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      // One end that goes takes the other with it.
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        near.destroy();
        far.destroy();
        sockets.delete(socket);
      });
    }
    near.on('data', (piece: Buffer) => pieces.push(piece));
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: ownPort } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${ownPort}${pathname === '/' ? '' : pathname}`,
    sent: () => Buffer.concat(pieces).toString('latin1'),
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
