import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench, Finding } from '../lab/bench.ts';
import { smallPayloads, traceBodies } from '../lab/bodies.ts';
import type { Lab } from '../lab/lab.ts';
import { fire, writeRequests } from '../lab/load.ts';
import { preciseCpuSeconds as cpuSeconds, startService } from '../lab/processes.ts';
import { inTurns } from '../lab/rounds.ts';
import { median, medianRatio } from '../lab/statistics.ts';
import { writingConnections as connections } from '../lab/writers.ts';

const bench = 'prices';

/** The noise of one round is some percent, so there are many short ones. */
const roundsFactor = 8;
const roundSeconds = 1;

export const prices: Bench = {
  name: bench,
  asks: 'POST /traces without a cost: CPU time with computed costs compared with none',
  async run(lab) {
    return [await comparePosts(lab)];
  },
};

async function comparePosts(lab: Lab): Promise<Finding> {
  const sides = {
    plain: await openSide(lab, 'plain', []),
    priced: await openSide(lab, 'priced', ['--price-missing-costs']),
  };
  const contestants = { plain: sides.plain.measure, priced: sides.priced.measure };
  const cpuUs = await inTurns(roundsFactor * lab.plan.rounds, contestants, { bothOrders: true });
  for (const { stop } of Object.values(sides)) await stop();
  return {
    bench,
    what: 'CPU time per POST with computed costs',
    value: medianRatio(cpuUs.priced, cpuUs.plain),
    unit: '× without',
    goal: { atMost: 1.03 },
    detail: `${median(cpuUs.priced).toFixed(1)} µs; without ${median(cpuUs.plain).toFixed(1)} µs`,
  };
}

async function openSide(lab: Lab, name: string, flags: readonly string[]) {
  const { warmUpSeconds } = lab.plan;
  const { url, key } = await lab.emptyDatabase(`prices-${name}`);
  const bodies = traceBodies(1_000, smallPayloads).map((body) => {
    const { cost_usd: _, ...rest } = JSON.parse(body) as Record<string, unknown>;
    return JSON.stringify(rest);
  });
  const requests = writeRequests(
    lab.file(`prices-${name}.requests`),
    bodies.map((body) => ({ method: 'POST' as const, path: '/traces', key, body })),
  );
  const service = await startService(url, null, flags);
  await fire(service.url, requests, { connections, seconds: warmUpSeconds });
  return {
    async measure(): Promise<number> {
      const startS = cpuSeconds(service.pid);
      const load = await fire(service.url, requests, { connections, seconds: roundSeconds });
      // Rolling follows the writes.
      await sleep(500);
      return ((cpuSeconds(service.pid) - startS) * 1e6) / load.requests;
    },
    stop: () => service.stop(),
  };
}
