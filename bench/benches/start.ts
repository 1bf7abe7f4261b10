import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from '../lab/bench.ts';
import { smallPayloads } from '../lab/bodies.ts';
import { fire } from '../lab/load.ts';
import { residentMb, startService } from '../lab/processes.ts';
import { median } from '../lab/statistics.ts';
import { postRequests, writingConnections as connections } from '../lab/writers.ts';

export const start: Bench = {
  name: 'start',
  asks: 'time from the command until ready at 10 M traces; resident memory when idle and after writes',
  async run(lab) {
    const { rounds, seconds, large } = lab.plan;
    const dataset = await lab.dataset(large);
    const requests = postRequests(lab, 'start', [dataset.key], smallPayloads);
    const readyMs: number[] = [];
    const idleMb: number[] = [];
    const loadedMb: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const startMs = performance.now();
      const service = await startService(dataset.url);
      const ready = await fetch(`${service.url}/readyz`);
      if (!ready.ok) throw new Error(`/readyz returned ${ready.status}`);
      readyMs.push(performance.now() - startMs);
      await sleep(1_000);
      idleMb.push(residentMb(service.pid));
      await fire(service.url, requests, { connections, seconds });
      loadedMb.push(residentMb(service.pid));
      await service.stop();
    }
    return [
      {
        bench: 'start',
        what: 'time until ready at 10 M traces',
        value: median(readyMs) / 1000,
        unit: 's',
        goal: { atMost: 1 },
        detail: `slowest ${(Math.max(...readyMs) / 1000).toFixed(2)} s`,
      },
      {
        bench: 'start',
        what: 'memory when idle',
        value: median(idleMb),
        unit: 'MB',
        goal: { atMost: 150 },
        detail: `largest ${Math.max(...idleMb).toFixed(0)} MB`,
      },
      {
        bench: 'start',
        what: 'memory after writes under load',
        value: median(loadedMb),
        unit: 'MB',
        goal: null,
        detail: `largest ${Math.max(...loadedMb).toFixed(0)} MB`,
      },
    ];
  },
};
