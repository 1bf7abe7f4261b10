import type { Finding } from './bench.ts';
import { smallPayloads } from './bodies.ts';
import type { Lab } from './lab.ts';
import { fire } from './load.ts';
import { cpuSeconds, startService } from './processes.ts';
import { inTurns } from './rounds.ts';
import { median, medianRatio, perSecond } from './statistics.ts';
import { postRequests, writingConnections as connections } from './writers.ts';

/** Many short rounds, so that noise of the machine affects both sides equally. */
const pairs = 30;
const roundSeconds = 2;

/** Compares the service of this checkout with that of another one: both alternate in the same run, each with its own database. */
export async function compareIngest(lab: Lab, checkout: string): Promise<Finding[]> {
  const before = await openSide(lab, 'before', checkout);
  const now = await openSide(lab, 'now', null);
  const measured = await inTurns(pairs, {
    before: () => before.measure(),
    now: () => now.measure(),
  });
  await before.stop();
  await now.stop();
  const rates = (side: 'before' | 'now') => measured[side].map((round) => round.perSecond);
  const cpu = (side: 'before' | 'now') => measured[side].map((round) => round.cpuUs);
  const microseconds = (values: readonly number[]) => `${median(values).toFixed(1)} µs`;
  return [
    {
      bench: 'ingest',
      what: 'requests per second compared with the other checkout',
      value: medianRatio(rates('now'), rates('before')),
      unit: '× before',
      goal: { atLeast: 0.97 },
      detail: `${perSecond(rates('now'))}; before ${perSecond(rates('before'))}`,
    },
    {
      bench: 'ingest',
      what: 'CPU time per request compared with the other checkout',
      value: medianRatio(cpu('now'), cpu('before')),
      unit: '× before',
      goal: null,
      detail: `${microseconds(cpu('now'))}; before ${microseconds(cpu('before'))}`,
    },
  ];
}

async function openSide(lab: Lab, name: string, checkout: string | null) {
  const { warmUpSeconds } = lab.plan;
  const database = await lab.emptyDatabase(`ingest-${name}`, checkout);
  const requests = postRequests(lab, `ingest-${name}`, [database.key], smallPayloads);
  const service = await startService(database.url, checkout);
  await fire(service.url, requests, { connections, seconds: warmUpSeconds });
  return {
    async measure() {
      const startS = cpuSeconds(service.pid);
      const load = await fire(service.url, requests, {
        connections,
        seconds: roundSeconds,
      });
      const cpuUs = ((cpuSeconds(service.pid) - startS) * 1e6) / (load.perSecond * roundSeconds);
      return { perSecond: load.perSecond, cpuUs };
    },
    stop: () => service.stop(),
  };
}
