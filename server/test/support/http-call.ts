import { request } from 'node:http';
import type { Agent, IncomingHttpHeaders } from 'node:http';

export interface Call {
  method?: 'GET' | 'POST';
  path: string;
  key?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer;
  /** Without an agent, each call has its own connection. */
  agent?: Agent;
  /** The address of the caller, one of 127.0.0.0/8. */
  from?: string;
  withinMs: number;
}

export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** One HTTP request over a real socket; rejects if there is no whole answer in time. */
export function callService(url: string, call: Call): Promise<Reply> {
  const { method = 'GET', path, key, headers = {}, body, agent, from, withinMs } = call;
  return new Promise((resolve, reject) => {
    const outgoing = request(`${url}${path}`, {
      method,
      agent: agent ?? false,
      ...(from === undefined ? {} : { localAddress: from }),
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
        ...headers,
      },
    });
    const late = setTimeout(
      () => outgoing.destroy(new Error(`no answer within ${withinMs} ms`)),
      withinMs,
    );
    outgoing.on('error', reject);
    outgoing.on('close', () => {
      clearTimeout(late);
      reject(new Error('the connection closed before the answer was whole'));
    });
    outgoing.on('response', (incoming) => {
      const pieces: Buffer[] = [];
      incoming.on('error', reject);
      incoming.on('data', (piece: Buffer) => pieces.push(piece));
      incoming.on('end', () => {
        if (!incoming.complete) return;
        const text = Buffer.concat(pieces).toString();
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text });
      });
    });
    outgoing.end(body);
  });
}
