import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AttackName } from './attack-names.ts';
import { count } from './honest-client.ts';
import type { Scene } from './scene.ts';

/** What an attack is given. */
export interface AttackContext {
  name: AttackName;
  scene: Scene;
  random: () => number;
  /** Fires when the soak ends: no attack may last longer. */
  stopped: AbortSignal;
  tally: AttackTally;
}

export interface AttackTally {
  /** Finished waves of each attack. */
  waves: Record<string, number>;
  requests: number;
  /** Answers that were read, by status; 'none' for requests without one. */
  answers: Record<string, number>;
  /** Answers that each attack got. */
  answered: Record<string, number>;
  /** Mistakes of the attacker's own program. */
  mistakes: Record<string, number>;
}

/** Attackers have their own address, so that limits by address do not punish honest clients. */
export const attackerAddress = '127.0.2.1';

/** A connection that reads nothing until it is told to. */
export function openSocket({ scene }: AttackContext, from = attackerAddress): Socket {
  const { hostname, port } = new URL(scene.url);
  const socket = connect({ host: hostname, port: Number(port), localAddress: from });
  socket.pause();
  socket.on('error', () => {});
  return socket;
}

/** Reads everything, and counts the first answer. */
export function readAnswers(context: AttackContext, socket: Socket): void {
  socket.once('data', (data: Buffer) => {
    const status = /^HTTP\/1\.1 (\d{3})/.exec(data.toString('latin1', 0, 16))?.[1];
    noteAnswer(context, status ?? null);
  });
  socket.on('data', () => {});
  socket.resume();
}

/** Counts an answer by its status, or a request that got none. */
export function noteAnswer({ name, tally }: AttackContext, status: string | null): void {
  count(tally.answers, status ?? 'none');
  if (status !== null) count(tally.answered, name);
}

/** Reads one piece every so often. */
export function readSlowly(socket: Socket, everyMs: number): void {
  socket.on('data', () => socket.pause());
  const timer = setInterval(() => socket.resume(), everyMs);
  socket.once('close', () => clearInterval(timer));
}

/** Keeps the connections until the server has closed them all or the time is over, then resets what is left. */
export async function holdOpen(
  { stopped }: AttackContext,
  sockets: readonly Socket[],
  holdMs: number,
): Promise<void> {
  const closed = Promise.all(
    sockets.map(async (socket) => {
      if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve));
    }),
  );
  const over = new AbortController();
  const signal = AbortSignal.any([stopped, over.signal]);
  await Promise.race([closed, sleep(holdMs, undefined, { signal }).catch(() => {})]);
  over.abort();
  for (const socket of sockets) socket.resetAndDestroy();
}
