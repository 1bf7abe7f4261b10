import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { limits } from '../limits.ts';
import type { Exposition } from '../metrics/exposition.ts';
import { createServer } from './node-http.ts';

export interface MetricsServer {
  port: number;
  stop(): Promise<void>;
}

export interface MetricsAddress {
  host: string;
  port: number;
}

type Bounds = Record<
  'headersTimeoutMs' | 'idleSocketTimeoutMs' | 'metricsConnectionsMax' | 'timeoutCheckIntervalMs',
  number
>;

/** `GET /metrics` on an address of its own, so that it can be kept away from the users of the API. With a token, only for its bearer. */
export async function serveMetrics(
  exposition: Exposition,
  { host, port }: MetricsAddress,
  token: string | null,
  bounds: Bounds = limits,
): Promise<MetricsServer> {
  const read = shareReads(exposition);
  const isAllowed = token === null ? () => true : bearerCheck(token);
  const server = createServer(
    {
      requestTimeout: limits.requestTimeoutMs,
      headersTimeout: bounds.headersTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: bounds.timeoutCheckIntervalMs,
      maxHeaderSize: limits.headerBytesMax,
    },
    (request, response) => void answer(request, response),
  );
  server.maxConnections = bounds.metricsConnectionsMax;
  // Readers that take nothing must not keep a connection from others.
  server.timeout = bounds.idleSocketTimeoutMs;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, headers } = request;
    const path = request.url?.split('?', 1)[0];
    if (path !== '/metrics') return say(response, 404, 'Metrics are at /metrics.');
    if (method !== 'GET' && method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      return say(response, 405, 'Use GET.');
    }
    if (!isAllowed(headers.authorization)) {
      response.setHeader('www-authenticate', 'Bearer');
      return say(response, 401, 'Send the header "Authorization: Bearer <token>".');
    }
    try {
      const text = await read();
      response.setHeader('content-type', exposition.contentType);
      response.end(text);
    } catch {
      say(response, 500, 'The metrics cannot be read.');
    }
  }

  server.listen(port, host);
  await once(server, 'listening');
  // A connection that cannot be accepted must not end the process.
  server.on('error', () => {});
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Requests that arrive while the metrics are read get the same text, so that many readers cost little more than one. */
function shareReads(exposition: Exposition): () => Promise<string> {
  let reading: Promise<string> | null = null;
  return () => (reading ??= exposition.text().finally(() => (reading = null)));
}

function say(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${text}\n`);
}

/** Compares hashes, so that the time says nothing about the token. */
function bearerCheck(token: string): (authorization: string | undefined) => boolean {
  const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest();
  const expected = hashOf(token);
  return (authorization = '') => {
    const given = /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
    return timingSafeEqual(hashOf(given), expected);
  };
}
