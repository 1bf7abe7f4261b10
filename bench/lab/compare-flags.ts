import { setTimeout as sleep } from 'node:timers/promises';
import type { Lab } from './lab.ts';
import { fire, writeRequests } from './load.ts';
import { preciseCpuSeconds as cpuSeconds, startService } from './processes.ts';
import { inTurns } from './rounds.ts';
import { median } from './statistics.ts';
import { writingConnections as connections } from './writers.ts';

/**
 * Two processes of the same program differ by some percent for as long as they live, so there are several pairs. Within a pair, the noise
 * of one round is some percent, too, so there are many short ones.
 */
const pairsFactor = 2;
const roundsOfPair = 6;
const roundSeconds = 1;

export interface ComparedFlags {
  ratio: number;
  /** `125.0 µs; without 124.1 µs; 0.98 to 1.03 by pair of processes`. */
  detail: string;
}

/** CPU time per POST of these bodies: the service with some flags compared with the service without. */
export async function compareFlags(
  lab: Lab,
  name: string,
  bodies: readonly string[],
  flags: readonly string[],
): Promise<ComparedFlags> {
  const ratios: number[] = [];
  const micros = { with: [] as number[], without: [] as number[] };
  const pairs = pairsFactor * lab.plan.rounds;
  for (let pair = 0; pair < pairs; pair++) {
    const open = (side: keyof typeof micros) =>
      openSide(lab, `${name}-${pair}-${side}`, bodies, side === 'with' ? flags : []);
    const isTurned = pair % 2 === 1;
    const first = await open(isTurned ? 'without' : 'with');
    const second = await open(isTurned ? 'with' : 'without');
    const [on, off] = isTurned ? [second, first] : [first, second];
    const measured = await inTurns(
      roundsOfPair,
      { with: on.measure, without: off.measure },
      { bothOrders: true },
    );
    await Promise.all([on.stop(), off.stop()]);
    ratios.push(median(measured.with) / median(measured.without));
    micros.with.push(...measured.with);
    micros.without.push(...measured.without);
  }
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
  return {
    ratio: median(ratios),
    detail:
      `${median(micros.with).toFixed(1)} µs; without ${median(micros.without).toFixed(1)} µs; ` +
      `${least.toFixed(2)} to ${most.toFixed(2)} by pair of processes`,
  };
}

async function openSide(
  lab: Lab,
  name: string,
  bodies: readonly string[],
  flags: readonly string[],
) {
  const { url, key } = await lab.emptyDatabase(name);
  const requests = writeRequests(
    lab.file(`${name}.requests`),
    bodies.map((body) => ({ method: 'POST', path: '/traces', key, body })),
  );
  const service = await startService(url, null, flags);
  await fire(service.url, requests, { connections, seconds: lab.plan.warmUpSeconds });
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
