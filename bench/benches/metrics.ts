import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../server/test/process/helpers.ts';
import type { Bench } from '../lab/bench.ts';
import { smallPayloads, traceBodies } from '../lab/bodies.ts';
import { compareServices, cpuDetail } from '../lab/compare-services.ts';
import { preciseCpuSeconds as cpuSeconds, startService } from '../lab/processes.ts';
import type { Running } from '../lab/processes.ts';
import { inTurns } from '../lab/rounds.ts';
import { median } from '../lab/statistics.ts';

/** The usual interval of Prometheus. */
const intervalS = 15;
const scrapes = 200;

export const metrics: Bench = {
  name: 'metrics',
  asks: 'CPU time of counting and of a scrape, against the same service without metrics',
  async run(lab) {
    const { rounds, seconds } = lab.plan;
    const [counting, silent] = await Promise.all([
      lab.emptyDatabase('metrics-on'),
      lab.emptyDatabase('metrics-off'),
    ]);
    const address = `127.0.0.1:${await freePort()}`;
    const flags = ['--metrics-listen', address];
    const on = await startService(counting.url, null, flags);
    const off = await startService(silent.url);

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

    const idle = await inTurns(rounds, { on: () => idleMs(on), off: () => idleMs(off) });
    const { ms, kilobytes } = await scrapeMs();
    await Promise.all([on.stop(), off.stop()]);
    const bodies = traceBodies(1_000, smallPayloads);
    const { cpuUs: busy } = await compareServices(lab, 'metrics', bodies, {
      ours: { flags },
      control: {},
    });
    const ofScrapes = (ms / (intervalS * 1_000)) * 100;
    const idleMore = median(idle.on) - median(idle.off);
    return [
      {
        bench: 'metrics',
        what: 'CPU time of a write with metrics',
        value: busy.ratio,
        unit: '× without',
        goal: { atMost: 1.01 },
        detail: cpuDetail(busy, 'without'),
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
