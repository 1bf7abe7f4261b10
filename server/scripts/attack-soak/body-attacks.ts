import { Agent } from 'node:http';
import { gzipSync } from 'node:zlib';
import { limits } from '../../src/limits.ts';
import { attackerAddress, noteAnswer } from './attack-socket.ts';
import type { AttackContext } from './attack-socket.ts';
import { generatedBodies, knownBodies } from '../../test/support/hostile-bodies.ts';
import { callService } from '../../test/support/http-call.ts';

const mib = 1024 * 1024;
const answerMsMax = 20_000;

async function post(
  context: AttackContext,
  path: string,
  body: string | Buffer,
  more: { headers?: Record<string, string>; agent?: Agent } = {},
): Promise<void> {
  const { scene, tally } = context;
  tally.requests += 1;
  const key = scene.attacker.ingestKey;
  const sent = { method: 'POST', path, key, body, from: attackerAddress } as const;
  const status = await callService(scene.url, { ...sent, ...more, withinMs: answerMsMax }).then(
    (reply) => String(reply.status),
    () => null,
  );
  noteAnswer(context, status);
}

let brackets: string[] | null = null;

function makeBrackets(): string[] {
  const pairs = '[],'.repeat(Math.floor(limits.batchBodyBytesMax / 3) - 10);
  return [`[${pairs}[]]`, `{"traces":[${pairs}[]]}`];
}

/** Bodies of the largest size that are lists of empty lists: every three bytes become an object. */
export async function bracketBodies(context: AttackContext): Promise<void> {
  brackets ??= makeBrackets();
  await Promise.all(brackets.map((body) => post(context, '/traces/batch', body)));
}

let bombs: Buffer[] | null = null;

function makeBombs(): Buffer[] {
  const spaces = (megabytes: number): Buffer => gzipSync(Buffer.alloc(megabytes * mib, ' '));
  return [spaces(100), Buffer.concat([spaces(19), gzipSync('x')])];
}

/** A few kilobytes that unpack to 100 MB, and some that lie about their size. */
export async function gzipBombs(context: AttackContext): Promise<void> {
  bombs ??= makeBombs();
  const headers = { 'content-encoding': 'gzip' };
  const all = [...Array(10).keys()].flatMap(() => bombs ?? []);
  await Promise.all(
    all.map((bomb, i) =>
      post(context, i % 4 === 0 ? '/traces' : '/traces/batch', bomb, { headers }),
    ),
  );
}

const hostileBodiesPerWave = 5;
/** Some of the bodies that were made to be slow, in every form that the service reads. */
export async function hostileBodies(context: AttackContext): Promise<void> {
  const all = [...knownBodies(), ...generatedBodies()];
  for (let i = 0; i < hostileBodiesPerWave && !context.stopped.aborted; i++) {
    const chosen = all[Math.floor(context.random() * all.length)];
    if (!chosen) throw new Error('there are no hostile bodies');
    const { path, headers, body } = chosen;
    const bytes = body();
    await Promise.all([1, 2].map(() => post(context, path, bytes, { headers })));
  }
}

const overloadMs = 5_000;
const overloadClients = 8;
const overloadBatch = JSON.stringify({
  traces: Array.from({ length: 1_000 }, (_, i) => ({
    model: `flood-${i % 10}`,
    input: 'One of far too many questions. '.repeat(10),
    cost_usd: 0.001,
  })),
});

/** Large batches of one team, each client as fast as it gets answers. */
export async function overload(context: AttackContext): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: overloadClients });
  const endMs = performance.now() + overloadMs;
  const flood = async (): Promise<void> => {
    while (performance.now() < endMs && !context.stopped.aborted) {
      await post(context, '/traces/batch?omit=input,output', overloadBatch, { agent });
    }
  };
  await Promise.all(Array.from({ length: overloadClients }, flood));
  agent.destroy();
}
