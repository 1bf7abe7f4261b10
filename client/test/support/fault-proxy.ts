import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** What may happen to a request on its way, with its share of all requests; the rest goes through. */
export const faultShares = {
  cutBeforeRequest: 0.07,
  cutInRequest: 0.07,
  cutAfterRequest: 0.08,
  cutInReply: 0.08,
  duplicate: 0.08,
  duplicateLater: 0.05,
  delay: 0.1,
};

type Fault = keyof typeof faultShares;

export interface FaultProxy {
  url: string;
  /** How often each fault happened, and how many requests there were. */
  counts: Record<Fault | 'requests' | 'replayedReplies', number>;
  stop(): Promise<void>;
}

/** A TCP proxy before the server that does to HTTP requests what bad networks do, as the seed says. One request a connection. */
export async function startFaultProxy(target: string, random: () => number): Promise<FaultProxy> {
  const { hostname, port } = new URL(target);
  const counts = {
    ...(Object.fromEntries(Object.keys(faultShares).map((name) => [name, 0])) as Record<
      Fault,
      number
    >),
    requests: 0,
    replayedReplies: 0,
  };
  const sockets = new Set<Socket>();
  const underWay = new Set<Promise<void>>();

  function track(socket: Socket): Socket {
    sockets.add(socket);
    // A reset is what this proxy is for; an unheard one would end the test.
    return socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  }

  function toServer(): Socket {
    return track(connect(Number(port), hostname));
  }

  /** The whole reply: the server closes after it, since it was asked to. */
  async function ask(request: Buffer): Promise<Buffer> {
    const socket = toServer();
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.write(request);
    await new Promise((resolve) => socket.once('close', resolve));
    const reply = Buffer.concat(chunks);
    if (/^idempotent-replayed: true/im.test(reply.toString('latin1'))) counts.replayedReplies += 1;
    return reply;
  }

  function cut(client: Socket): void {
    if (random() < 0.5) client.destroy();
    else client.resetAndDestroy();
  }

  async function handle(client: Socket): Promise<void> {
    const fault = drawFault(random());
    counts.requests += 1;
    if (fault !== null) counts[fault] += 1;
    if (fault === 'cutBeforeRequest') {
      await once(client, 'data');
      cut(client);
      return;
    }
    const request = await readRequest(client);
    if (request === null) return;
    switch (fault) {
      case 'cutInRequest': {
        const socket = toServer();
        socket.write(request.subarray(0, 1 + Math.floor(random() * (request.length - 1))));
        await sleep(random() * 5);
        socket.destroy();
        cut(client);
        return;
      }
      case 'cutAfterRequest': {
        // The client tries again while the server is still at it, or when it is done.
        const reply = ask(request);
        await sleep(random() * 5);
        cut(client);
        await reply;
        return;
      }
      case 'cutInReply': {
        const reply = await ask(request);
        client.write(reply.subarray(0, Math.floor(random() * reply.length)), () => cut(client));
        return;
      }
      case 'duplicate': {
        client.end(await Promise.race([ask(request), ask(request)]));
        return;
      }
      case 'duplicateLater': {
        client.end(await ask(request));
        await sleep(random() * 200);
        await ask(request);
        return;
      }
      case 'delay':
        await sleep(random() * 40);
        client.end(await ask(request));
        return;
      case null:
        client.end(await ask(request));
    }
  }

  const listener = createServer((client) => {
    const work = handle(track(client)).catch(() => void client.destroy());
    underWay.add(work);
    void work.finally(() => underWay.delete(work));
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    counts,
    async stop() {
      listener.close();
      // Late duplicates must have arrived before anybody counts.
      await Promise.all(underWay);
      for (const socket of sockets) socket.destroy();
    },
  };
}

function drawFault(drawn: number): Fault | null {
  let bound = 0;
  for (const [name, share] of Object.entries(faultShares)) {
    bound += share;
    if (drawn < bound) return name as Fault;
  }
  return null;
}

/** The bytes of one request, with the wish that the server closes after its reply; null where the client went away before. */
async function readRequest(client: Socket): Promise<Buffer | null> {
  let bytes = Buffer.alloc(0);
  for await (const chunk of client.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes = Buffer.concat([bytes, chunk]);
    const headEnd = bytes.indexOf('\r\n\r\n');
    if (headEnd === -1) continue;
    const head = bytes.subarray(0, headEnd).toString('latin1');
    const bodyLength = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    const body = bytes.subarray(headEnd + 4);
    if (body.length < bodyLength) continue;
    const closing = head.replace(/^connection:.*$/im, 'connection: close');
    return Buffer.concat([Buffer.from(`${closing}\r\n\r\n`, 'latin1'), body]);
  }
  return null;
}
