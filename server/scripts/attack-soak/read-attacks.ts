import { pick } from '../../test/support/seeded-random.ts';
import { writeRequest } from '../../test/security/helpers.ts';
import { holdOpen, openSocket, readAnswers, readSlowly } from './attack-socket.ts';
import type { AttackContext } from './attack-socket.ts';

const holdMs = 15_000;

function largeTrace({ scene: { attacker } }: AttackContext): string {
  const path = `/traces/${attacker.largeTraceId}`;
  return writeRequest({ path, key: attacker.largeReadKey });
}

/** Many large answers asked for at once on one connection that reads nothing. */
export async function pipelinedLargeReads(context: AttackContext): Promise<void> {
  const socket = openSocket(context);
  socket.write(largeTrace(context).repeat(500));
  context.tally.requests += 500;
  await holdOpen(context, [socket], holdMs);
}

/** One large answer each on many connections that read nothing. */
export async function unreadLargeReads(context: AttackContext): Promise<void> {
  const sockets = Array.from({ length: 300 }, () => openSocket(context));
  for (const socket of sockets) socket.write(largeTrace(context));
  context.tally.requests += sockets.length;
  await holdOpen(context, sockets, holdMs);
}

/** Breakdowns of 200,000 names: read at once, slowly, or not at all. */
export async function wideBreakdowns(context: AttackContext): Promise<void> {
  const { scene, random, tally } = context;
  const path = '/analytics/by-model';
  const sockets = Array.from({ length: 5 }, () => {
    const socket = openSocket(context);
    const manner = pick(random, ['fully', 'slowly', 'not at all'] as const);
    if (manner === 'fully') readAnswers(context, socket);
    if (manner === 'slowly') readSlowly(socket, 50);
    socket.write(writeRequest({ path, key: scene.attacker.wideReadKey, isLast: true }));
    return socket;
  });
  tally.requests += sockets.length;
  await holdOpen(context, sockets, 25_000);
}

/** Pages of half a gigabyte that are read slowly. */
export async function slowPages(context: AttackContext): Promise<void> {
  const key = context.scene.attacker.largeReadKey;
  const sockets = Array.from({ length: 5 }, () => {
    const socket = openSocket(context);
    readSlowly(socket, 20);
    socket.write(writeRequest({ path: '/traces?limit=100', key, isLast: true }));
    return socket;
  });
  context.tally.requests += sockets.length;
  await holdOpen(context, sockets, 20_000);
}
