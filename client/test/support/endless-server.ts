import { once } from 'node:events';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';

export interface EndlessServer {
  url: string;
  /** What the last reply was made of so far, before any compression. */
  sentBytes(): number;
  /** Replies that are still being sent. */
  openReplies(): number;
  stop(): Promise<void>;
}

const piece = Buffer.from(`"${'x'.repeat(64 * 1024)}",`);

/** A server whose every reply is the beginning of a list of texts that never ends. */
export async function startEndlessServer(
  status: number,
  encoding: 'identity' | 'gzip' = 'identity',
): Promise<EndlessServer> {
  let sent = 0;
  let open = 0;
  function* endless(): Generator<Buffer, void, undefined> {
    yield Buffer.from('[');
    for (sent = 0; ; sent += piece.length) yield piece;
  }
  const send = async (response: ServerResponse): Promise<void> => {
    open += 1;
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-encoding': encoding,
    });
    const packed = encoding === 'gzip' ? [createGzip({ level: 1 })] : [];
    try {
      await pipeline([Readable.from(endless()), ...packed, response]);
    } catch {
      // The client has closed the connection, as it should.
    }
    open -= 1;
  };
  const server = createServer((request, response) => {
    request.resume();
    void send(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sentBytes: () => sent,
    openReplies: () => open,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
