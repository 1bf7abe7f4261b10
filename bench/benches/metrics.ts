import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../server/test/process/helpers.ts';
import type { Bench } from '../lab/bench.ts';
import { smallPayloads } from '../lab/bodies.ts';
import { fire } from '../lab/load.ts';
import { preciseCpuSeconds as cpuSeconds, startService } from '../lab/processes.ts';
import type { Running } from '../lab/processes.ts';
import { inTurns } from '../lab/rounds.ts';
import { median, medianRatio } from '../lab/statistics.ts';
import { postRequests, writingConnections as connections } from '../lab/writers.ts';

/** The usual interval of Prometheus. */
const intervalS = 15;
const scrapes = 200;
/** The noise of one round is some percent, so there are many short ones. */
const roundsFactor = 8;
const roundSeconds = 1;

export const metrics: Bench = {
  name: 'metrics',
  asks: 'CPU time of counting and of a scrape, against the same service without metrics',
  async run(lab) {
    const { rounds, seconds, warmUpSeconds } = lab.plan;
    const [counting, silent] = await Promise.all([
      lab.emptyDatabase('metrics-on'),
      lab.emptyDatabase('metrics-off'),
    ]);
    const address = `127.0.0.1:${await freePort()}`;
    const flags = ['--metrics-listen', address];
    const on = await startService(counting.url, null, flags);
    const off = await startService(silent.url);
    const bodies = {
      on: postRequests(lab, 'metrics-on', [counting.key], smallPayloads),
      off: postRequests(lab, 'metrics-off', [silent.key], smallPayloads),
    };

    async function microsPerRequest(service: Running, name: keyof typeof bodies): Promise<number> {
      const before = cpuSeconds(service.pid);
      const load = { connections, seconds: roundSeconds };
      const { requests } = await fire(service.url, bodies[name], load);
      // Rolling follows the writes.
      await sleep(500);
      return ((cpuSeconds(service.pid) - before) * 1e6) / requests;
    }

    async function idleMs(service: Running): Promise<number> {
      const before = cpuSeconds(service.pid);
      await sleep(seconds * 1_000);
      return ((cpuSeconds(service.pid) - before) * 1_000) / seconds;
    }

    async function scrapeMs(): Promise<{ ms: number; kilobytes: number }> {
      const before = cpuSeconds(on.pid);
      let kilobytes = 0;
      for (let i = 0; i < scrapes; i++) {
        const text = await (await fetch(`http://${address}/metrics`)).text();
        kilobytes = text.length / 1024;
      }
      return { ms: ((cpuSeconds(on.pid) - before) * 1_000) / scrapes, kilobytes };
    }

    for (const name of ['on', 'off'] as const) {
      const { url } = name === 'on' ? on : off;
      await fire(url, bodies[name], { connections, seconds: warmUpSeconds });
    }
    const idle = await inTurns(rounds, { on: () => idleMs(on), off: () => idleMs(off) });
    const busy = await inTurns(
      rounds * roundsFactor + 1,
      { on: () => microsPerRequest(on, 'on'), off: () => microsPerRequest(off, 'off') },
      { bothOrders: true },
    );
    const { ms, kilobytes } = await scrapeMs();
    await Promise.all([on.stop(), off.stop()]);
    const ofScrapes = (ms / (intervalS * 1_000)) * 100;
    const idleMore = median(idle.on) - median(idle.off);
    return [
      {
        bench: 'metrics',
        what: 'CPU time of a write with metrics',
        value: medianRatio(busy.on, busy.off),
        unit: '× without',
        goal: { atMost: 1.01 },
        detail: `${median(busy.on).toFixed(1)} µs against ${median(busy.off).toFixed(1)} µs`,
      },
      {
        bench: 'metrics',
        what: `CPU of a scrape every ${intervalS} s`,
        value: ofScrapes,
        unit: '% of a core',
        goal: { atMost: 1 },
        detail: `${ms.toFixed(1)} ms for ${kilobytes.toFixed(0)} KB`,
      },
      {
        bench: 'metrics',
        what: 'CPU of an idle service with metrics',
        value: idleMore / 10,
        unit: '% of a core more',
        goal: { atMost: 1 },
        detail: `${median(idle.on).toFixed(1)} ms per second against ${median(idle.off).toFixed(1)} ms`,
      },
    ];
  },
};
