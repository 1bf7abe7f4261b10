/**
 * A program that writes one trace at a time at a fixed rate and asks for /healthz ten times per second, and prints a JSON line for each
 * answer: `node paced-load.ts URL KEY PER_SECOND SECONDS`. It is an open loop: a write is timed from when it was due, also if earlier ones
 * are not answered yet. It ends by itself.
 */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { callService } from '../../server/test/support/http-call.ts';

/** One timed answer. */
export interface PacedAnswer {
  kind: 'write' | 'health';
  /** When it was due, in milliseconds since 1970. */
  dueMs: number;
  tookMs: number;
  /** 0 if there was no answer. */
  status: number;
}

const [url = '', key = '', perSecond = '', seconds = ''] = process.argv.slice(2);
const answerMsMax = 120_000;
const agent = new Agent({ keepAlive: true });
const healthAgent = new Agent({ keepAlive: true });
const body = (i: number): string =>
  JSON.stringify({
    model: `model-${i % 10}`,
    input: 'One of the questions of an honest team. '.repeat(12),
    output: 'An answer. '.repeat(25),
    latency_ms: i % 1_000,
    cost_usd: 0.001,
    user_identifier: `user-${(i * 7_919) % 5_000}`,
  });

const health = { path: '/healthz', agent: healthAgent };
const write = (i: number) => ({ method: 'POST', path: '/traces', body: body(i), agent }) as const;

async function timed(
  kind: PacedAnswer['kind'],
  dueMs: number,
  call: typeof health | ReturnType<typeof write>,
): Promise<void> {
  const status = await callService(url, { ...call, key, withinMs: answerMsMax }).then(
    (reply) => reply.status,
    () => 0,
  );
  const tookMs = performance.timeOrigin + performance.now() - dueMs;
  process.stdout.write(`${JSON.stringify({ kind, dueMs, tookMs, status })}\n`);
}

async function pace(rate: number, run: (i: number, dueMs: number) => Promise<void>): Promise<void> {
  const startMs = performance.timeOrigin + performance.now();
  const running = new Set<Promise<void>>();
  for (let i = 0; i < rate * Number(seconds); i++) {
    const dueMs = startMs + (i * 1_000) / rate;
    const waitMs = dueMs - (performance.timeOrigin + performance.now());
    if (waitMs > 0) await sleep(waitMs);
    const one = run(i, dueMs).finally(() => running.delete(one));
    running.add(one);
  }
  await Promise.all(running);
}

if (import.meta.main) {
  await Promise.all([
    pace(Number(perSecond), (i, dueMs) => timed('write', dueMs, write(i))),
    pace(10, (_, dueMs) => timed('health', dueMs, health)),
  ]);
  process.exit(0);
}
