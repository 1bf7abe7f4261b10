import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A request as a provider sees it. */
export interface ProviderRequest {
  path: string;
  headers: IncomingHttpHeaders;
  body: Record<string, unknown>;
}

/** A provider on the loopback. What it does follows from the request alone, so that two clients that ask the same get the same. */
export interface FakeProvider {
  url: string;
  requests: ProviderRequest[];
  /** Responses whose client went away before the end. */
  cutOff(): number;
  stop(): Promise<void>;
}

export type Route = (request: ProviderRequest, reply: Reply) => Promise<void> | void;

/** How a fake answers. */
export interface Reply {
  json(status: number, body: unknown, headers?: Record<string, string>): void;
  /** Server-sent events, one write each. */
  events(events: readonly SentEvent[]): Promise<void>;
  isGone(): boolean;
}

export interface SentEvent {
  event?: string;
  /** Text as it is; everything else as JSON. */
  data: unknown;
  afterMs?: number;
  /** The connection breaks instead. */
  cut?: true;
}

export async function startFakeProvider(
  routes: Readonly<Record<string, Route>>,
): Promise<FakeProvider> {
  const requests: ProviderRequest[] = [];
  let cutOff = 0;

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const path = incoming.url ?? '/';
    const text = await textOf(incoming);
    const body = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
    const request = { path, headers: incoming.headers, body };
    requests.push(request);
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) cutOff += 1;
    });
    const route = routes[path.split('?')[0] ?? ''];
    const reply = replyOn(outgoing);
    if (route === undefined) reply.json(404, { error: { message: `There is no ${path}.` } });
    else await route(request, reply);
  }

  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch((error: unknown) => outgoing.destroy(error as Error));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    cutOff: () => cutOff,
    async stop() {
      const closed = new Promise((resolve) => {
        server.close(resolve);
      });
      server.closeAllConnections();
      await closed;
    },
  };
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

/** The same in every reply: two replies to the same request are compared, and the second may turn between them. */
const date = 'Sun, 15 Nov 2026 12:00:00 GMT';

function replyOn(outgoing: ServerResponse): Reply {
  outgoing.setHeader('date', date);
  return {
    json(status, body, headers = {}) {
      outgoing.writeHead(status, {
        'content-type': 'application/json',
        'x-request-id': 'req_fixed',
        'request-id': 'req_fixed',
        ...headers,
      });
      outgoing.end(JSON.stringify(body));
    },
    async events(events) {
      outgoing.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'x-request-id': 'req_fixed',
        'request-id': 'req_fixed',
      });
      outgoing.flushHeaders();
      for (const { event, data, afterMs, cut } of events) {
        if (afterMs !== undefined) await waitWhileOpen(outgoing, afterMs);
        if (outgoing.destroyed) return;
        if (cut === true) {
          outgoing.socket?.destroy();
          return;
        }
        const name = event === undefined ? '' : `event: ${event}\n`;
        const text = typeof data === 'string' ? data : JSON.stringify(data);
        outgoing.write(`${name}data: ${text}\n\n`);
      }
      outgoing.end();
    },
    isGone: () => outgoing.destroyed,
  };
}

/** Waits, but no longer than the client is there: a long wait must not keep the process of the tests alive. */
async function waitWhileOpen(outgoing: ServerResponse, ms: number): Promise<void> {
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  outgoing.once('close', leave);
  await sleep(ms, undefined, { signal: gone.signal }).catch(() => {});
  outgoing.off('close', leave);
}

/** The last thing that a user said: it decides what the fake does. */
export function lastUserText(messages: unknown): string {
  if (typeof messages === 'string') return messages;
  if (!Array.isArray(messages)) return '';
  const said = (messages as { role?: string; content?: unknown }[]).filter(
    ({ role }) => role === 'user',
  );
  const content = said.at(-1)?.content ?? '';
  return typeof content === 'string' ? content : JSON.stringify(content);
}

/** Real providers answer with the exact version of some models. */
const answeringModels: Readonly<Record<string, string>> = {
  'gpt-4o': 'gpt-4o-2024-08-06',
  'embed-small': 'embed-small-2024-01-25',
  'claude-opus-5': 'claude-opus-5-20260201',
};

export function answeringModel({ model }: Record<string, unknown>): string {
  return answeringModels[String(model)] ?? String(model);
}

/** The status that a text like `fail 429` asks for. */
export function askedFailure(text: string): number | undefined {
  const status = /fail (\d{3})/.exec(text)?.[1];
  return status === undefined ? undefined : Number(status);
}

/** The answer begins later than the stream. */
export function afterAPause([first, ...rest]: readonly SentEvent[]): readonly SentEvent[] {
  return first === undefined ? [] : [{ ...first, afterMs: pauseMs }, ...rest];
}

export const pauseMs = 300;
