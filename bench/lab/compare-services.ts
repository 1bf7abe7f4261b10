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
/** V8 is still compiling after some seconds, the more the larger the program is. */
const warmUpFactor = 3;

/** How to start one of the two services. */
export interface Side {
  /** Another checkout; null for this one. */
  checkout?: string | null;
  flags?: readonly string[];
}

export interface Compared {
  ratio: number;
  /** The median of all rounds of each side. */
  ours: number;
  control: number;
  /** `0.98 to 1.03 by pair of processes`. */
  spread: string;
}

type SideName = 'ours' | 'control';
type Round = Record<'perSecond' | 'cpuUs', number>;

/** Requests per second, and CPU time per request, of POST with these bodies: one service compared with another. */
export async function compareServices(
  lab: Lab,
  name: string,
  bodies: readonly string[],
  sides: Readonly<Record<SideName, Side>>,
): Promise<Record<keyof Round, Compared>> {
  const pairs: Record<SideName, Round[]>[] = [];
  for (let pair = 0; pair < pairsFactor * lab.plan.rounds; pair++) {
    const open = (side: SideName) => openSide(lab, `${name}-${pair}-${side}`, bodies, sides[side]);
    const isTurned = pair % 2 === 1;
    const first = await open(isTurned ? 'control' : 'ours');
    const second = await open(isTurned ? 'ours' : 'control');
    const [ours, control] = isTurned ? [second, first] : [first, second];
    const contestants = { ours: ours.measure, control: control.measure };
    pairs.push(await inTurns(roundsOfPair, contestants, { bothOrders: true }));
    await Promise.all([ours.stop(), control.stop()]);
  }
  return { perSecond: compared(pairs, 'perSecond'), cpuUs: compared(pairs, 'cpuUs') };
}

function compared(pairs: readonly Record<SideName, Round[]>[], what: keyof Round): Compared {
  const valuesOf = (rounds: readonly Round[]) => rounds.map((round) => round[what]);
  const all = (side: SideName) => median(valuesOf(pairs.flatMap((pair) => pair[side])));
  const ratios = pairs.map(
    ({ ours, control }) => median(valuesOf(ours)) / median(valuesOf(control)),
  );
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
  return {
    ratio: median(ratios),
    ours: all('ours'),
    control: all('control'),
    spread: `${least.toFixed(2)} to ${most.toFixed(2)} by pair of processes`,
  };
}

async function openSide(
  lab: Lab,
  name: string,
  bodies: readonly string[],
  { checkout = null, flags = [] }: Side,
) {
  const { url, key } = await lab.emptyDatabase(name, checkout);
  const requests = writeRequests(
    lab.file(`${name}.requests`),
    bodies.map((body) => ({ method: 'POST', path: '/traces', key, body })),
  );
  const service = await startService(url, checkout, flags);
  const warmUpSeconds = warmUpFactor * lab.plan.warmUpSeconds;
  await fire(service.url, requests, { connections, seconds: warmUpSeconds });
  return {
    async measure(): Promise<Round> {
      const startS = cpuSeconds(service.pid);
      const load = await fire(service.url, requests, { connections, seconds: roundSeconds });
      // Rolling follows the writes.
      await sleep(500);
      const cpuUs = ((cpuSeconds(service.pid) - startS) * 1e6) / load.requests;
      return { perSecond: load.perSecond, cpuUs };
    },
    stop: () => service.stop(),
  };
}

/** `125.0 µs; without 124.1 µs; 0.98 to 1.03 by pair of processes`. */
export function cpuDetail({ ours, control, spread }: Compared, controlName: string): string {
  return `${ours.toFixed(1)} µs; ${controlName} ${control.toFixed(1)} µs; ${spread}`;
}
