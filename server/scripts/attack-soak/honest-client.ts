import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { pick } from '../../test/support/seeded-random.ts';
import { callService } from '../../test/support/http-call.ts';
import type { Call, Reply } from '../../test/support/http-call.ts';
import type { RequestLog } from '../../test/support/request-log.ts';

/** What all honest clients saw so far. */
export interface HonestTally {
  requests: number;
  /** Single requests that got a 5xx. */
  serverErrors: number;
  /** Single requests whose connection broke or whose time ran out. */
  noAnswers: number;
  /** The slowest single request that got an answer. */
  slowestMs: number;
  operations: number;
  /** Operations that failed after their retries. */
  failed: number;
  acknowledged: number;
  /** Acknowledged traces that a later read did not show or count. */
  stale: number;
  /** Reasons of failures and stale reads, with their counts. */
  reasons: Record<string, number>;
}

export interface HonestTeam {
  index: number;
  key: string;
  /** Traces that were acknowledged to any client of the team. */
  acknowledged: number;
}

export interface HonestContext {
  url: string;
  random: () => number;
  log: RequestLog;
  tally: HonestTally;
  isStopping(): boolean;
}

/** An operation with all its attempts. */
type Outcome = { kind: 'done'; text: string } | { kind: 'failed'; last: string };

const answerMsMax = 15_000;
const operationMsMax = 60_000;
const attemptsMax = 12;
const batchTraces = 10;
const retriedStatuses = new Set([408, 429, 503]);

/** One client: writes, reads its own traces back, looks at sums and pages, one after the other. */
export async function runHonestClient(
  context: HonestContext,
  team: HonestTeam,
  client: string,
): Promise<void> {
  const { random, tally, isStopping } = context;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const from = `127.0.1.${team.index + 1}`;
  let writes = 0;

  async function once(call: Call): Promise<Reply | null> {
    tally.requests += 1;
    const startMs = performance.now();
    try {
      const reply = await callService(context.url, call);
      tally.slowestMs = Math.max(tally.slowestMs, performance.now() - startMs);
      if (reply.status >= 500) tally.serverErrors += 1;
      return reply;
    } catch {
      tally.noAnswers += 1;
      return null;
    }
  }

  /** Tries until it works, as the client library does. */
  async function operate(
    what: string,
    expected: number,
    call: Omit<Call, 'withinMs'>,
  ): Promise<Outcome> {
    tally.operations += 1;
    const endMs = performance.now() + operationMsMax;
    let last = '';
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      const reply = await once({ key: team.key, agent, from, withinMs: answerMsMax, ...call });
      if (reply?.status === expected) return { kind: 'done', text: reply.text };
      last = reply === null ? 'no answer' : String(reply.status);
      if (reply !== null && !retriedStatuses.has(reply.status)) break;
      const pauseMs = pauseBefore(attempt, reply, random);
      if (performance.now() + pauseMs > endMs) break;
      await sleep(pauseMs);
    }
    tally.failed += 1;
    count(tally.reasons, `${what}: ${last}`);
    return { kind: 'failed', last };
  }

  async function write(traces: number): Promise<void> {
    const name = `${client}-${++writes}`;
    const items = Array.from({ length: traces }, (_, i) => ({
      model: pick(random, ['gpt-4o', 'claude', 'mistral']),
      input: 'A question of ordinary length. '.repeat(1 + Math.floor(random() * 30)),
      output: 'An answer.',
      cost_usd: 0.001,
      latency_ms: Math.floor(random() * 3000),
      feature_name: 'soak',
      user_identifier: `${name}/${i}`,
    }));
    const isBatch = traces > 1;
    const outcome = await operate(isBatch ? 'batch' : 'write', 201, {
      method: 'POST',
      path: isBatch ? '/traces/batch?omit=input,output' : '/traces',
      headers: { 'idempotency-key': randomUUID() },
      body: JSON.stringify(isBatch ? { traces: items } : items[0]),
    });
    if (outcome.kind === 'failed') return;
    const ids = acknowledgedIds(outcome.text, isBatch);
    context.log.acknowledged(team.index, name, ids);
    tally.acknowledged += ids.length;
    team.acknowledged += ids.length;
    await readBack(ids.at(-1) ?? '');
  }

  async function readBack(id: string): Promise<void> {
    const outcome = await operate('read back', 200, { path: `/traces/${id}` });
    if (outcome.kind === 'failed' && outcome.last === '404') tally.stale += 1;
  }

  async function readOverview(): Promise<void> {
    const known = team.acknowledged;
    const outcome = await operate('overview', 200, { path: '/analytics/overview' });
    if (outcome.kind === 'failed') return;
    const { total_calls: calls } = JSON.parse(outcome.text) as { total_calls: number };
    if (calls >= known) return;
    tally.stale += 1;
    count(tally.reasons, 'overview: counts less than was acknowledged');
  }

  while (!isStopping()) {
    const dice = random();
    if (dice < 0.4) await write(1);
    else if (dice < 0.55) await write(batchTraces);
    else if (dice < 0.75) await readOverview();
    else await operate('read', 200, { path: pick(random, readPaths) });
    await sleep(100 + random() * 200);
  }
  agent.destroy();
}

const readPaths = [
  '/traces?limit=20&omit=input,output',
  '/traces?limit=5&page=3',
  '/analytics/by-model',
  '/analytics/by-feature',
  '/analytics/daily',
];

function acknowledgedIds(text: string, isBatch: boolean): string[] {
  const json = JSON.parse(text) as { id: string } & { traces: { id: string }[] };
  return isBatch ? json.traces.map(({ id }) => id) : [json.id];
}

/** What the service asks for, or twice as long as before. */
function pauseBefore(attempt: number, reply: Reply | null, random: () => number): number {
  const retryAfterS = Number(reply?.headers['retry-after'] ?? NaN);
  if (!Number.isNaN(retryAfterS)) return retryAfterS * 1000 + random() * 500;
  return Math.min(5_000, 200 * 2 ** attempt) * (0.5 + random() / 2);
}

export function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}
