import { generateKey } from '../../src/core/api-key.ts';
import { limits } from '../../src/limits.ts';
import { pick } from '../../test/support/seeded-random.ts';
import { writeRequest } from '../../test/security/helpers.ts';
import { attackerAddress, holdOpen, openSocket, readAnswers } from './attack-socket.ts';
import type { AttackContext } from './attack-socket.ts';

const holdMs = 12_000;

/** Endless requests on connections that read no answer. */
export async function pipelinedUnread(context: AttackContext): Promise<void> {
  const requests = writeRequest({ path: '/openapi.json' }).repeat(1_500);
  const sockets = Array.from({ length: 50 }, () => openSocket(context));
  for (const socket of sockets) socket.write(requests);
  context.tally.requests += 50 * 1_500;
  await holdOpen(context, sockets, holdMs);
}

/** Bodies that are announced and never come, or a byte at a time. */
export async function idleBodies(context: AttackContext): Promise<void> {
  const { scene, random, tally } = context;
  const sockets = Array.from({ length: 100 }, (_, i) => {
    const socket = openSocket(context);
    readAnswers(context, socket);
    const isBatch = random() < 0.5;
    const length = isBatch ? limits.batchBodyBytesMax : limits.bodyBytesMax;
    const size = random() < 0.2 ? 'transfer-encoding: chunked' : `content-length: ${length}`;
    socket.write(
      writeRequest({
        method: 'POST',
        path: isBatch ? '/traces/batch' : '/traces',
        key: scene.attacker.ingestKey,
        headers: ['content-type: application/json', size],
      }),
    );
    if (i % 2 === 0) {
      const piece = size.includes('chunked') ? '1\r\n[\r\n' : '[';
      const drip = setInterval(() => socket.write(piece), 500);
      socket.once('close', () => clearInterval(drip));
    }
    return socket;
  });
  tally.requests += sockets.length;
  await holdOpen(context, sockets, 15_000);
}

/** Paths that do not exist, without a key, as fast as the answers come. */
export async function anonymousFlood(context: AttackContext): Promise<void> {
  const requests = writeRequest({ path: '/nowhere' }).repeat(200);
  const last = writeRequest({ path: '/nowhere', isLast: true });
  const sockets = Array.from({ length: 20 }, () => openSocket(context));
  for (const socket of sockets) {
    readAnswers(context, socket);
    socket.write(`${requests}${last}`);
  }
  context.tally.requests += 20 * 201;
  await holdOpen(context, sockets, holdMs);
}

/** Requests that stop somewhere: in the request line, in the headers, before the body, in the body, in a chunk. */
export async function halfOpen(context: AttackContext): Promise<void> {
  const { scene, tally } = context;
  const head = `POST /traces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${scene.attacker.ingestKey}\r\ncontent-type: application/json\r\n`;
  const halves = [
    'POST /tra',
    head,
    `${head}content-length: 20\r\n\r\n`,
    `${head}content-length: 20\r\n\r\n{"model":"half"`,
    `${head}transfer-encoding: chunked\r\n\r\n10\r\n{"model":`,
  ];
  const sockets = Array.from({ length: 1_000 }, (_, i) => {
    const socket = openSocket(context);
    readAnswers(context, socket);
    socket.write(halves[i % halves.length] ?? '');
    return socket;
  });
  tally.requests += sockets.length;
  await holdOpen(context, sockets, 20_000);
}

/** Random bytes, and requests whose framing is wrong. */
export async function garbage(context: AttackContext): Promise<void> {
  const { random, tally } = context;
  const malformed = [
    'GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n',
    'GET /\0 HTTP/1.1\r\nhost: x\r\n\r\n',
    'POST /traces HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    'POST /traces HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    'POST /traces HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001',
    `GET /traces/%ZZ HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(limits.headerBytesMax)}\r\n\r\n`,
  ];
  const sockets = Array.from({ length: 100 }, () => {
    const socket = openSocket(context);
    readAnswers(context, socket);
    if (random() < 0.5) socket.write(pick(random, malformed), 'latin1');
    else socket.write(Buffer.from(Array.from({ length: 2_000 }, () => random() * 256)));
    return socket;
  });
  tally.requests += sockets.length;
  await holdOpen(context, sockets, 6_000);
}

/** Keys that were never made, from a few addresses. */
export async function wrongKeys(context: AttackContext): Promise<void> {
  const { random, tally } = context;
  const sockets = Array.from({ length: 20 }, (_, i) => {
    const socket = openSocket(context, i < 10 ? attackerAddress : `127.0.2.${1 + (i % 5)}`);
    readAnswers(context, socket);
    const path = pick(random, ['/traces', '/traces/%', '/analytics/by-model']);
    const guesses = Array.from({ length: 30 }, (_, no) =>
      writeRequest({ path, key: random() < 0.9 ? generateKey() : 'guess', isLast: no === 29 }),
    );
    socket.write(guesses.join(''));
    return socket;
  });
  tally.requests += 20 * 30;
  await holdOpen(context, sockets, holdMs);
}
