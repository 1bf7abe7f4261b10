import type { Bench } from '../lab/bench.ts';
import { smallPayloads } from '../lab/bodies.ts';
import { fire } from '../lab/load.ts';
import type { Load } from '../lab/load.ts';
import { startService } from '../lab/processes.ts';
import { inTurns } from '../lab/rounds.ts';
import { medianRatio, perSecond } from '../lab/statistics.ts';
import { postRequests, writingConnections as connections } from '../lab/writers.ts';

export const growth: Bench = {
  name: 'growth',
  asks: 'POST /traces into a database with 10 M traces, compared with one with 10 k',
  async run(lab) {
    const { rounds, seconds, warmUpSeconds, small, large } = lab.plan;
    const contestants: Record<string, () => Promise<Load>> = {};
    const services = [];
    for (const size of [small, large]) {
      const dataset = await lab.dataset(size);
      const service = await startService(dataset.url);
      const requests = postRequests(lab, `growth-${size}`, [dataset.key], smallPayloads);
      await fire(service.url, requests, { connections, seconds: warmUpSeconds });
      contestants[size] = () => fire(service.url, requests, { connections, seconds });
      services.push(service);
    }
    const loads = await inTurns(rounds, contestants);
    for (const service of services) await service.stop();
    const [smallRates = [], largeRates = []] = [small, large].map((size) =>
      (loads[size] ?? []).map((load) => load.perSecond),
    );
    return [
      {
        bench: 'growth',
        what: 'requests per second into 10 M',
        value: medianRatio(largeRates, smallRates),
        unit: '× into 10 k',
        goal: { atLeast: 0.8 },
        detail: `${perSecond(largeRates)}; into 10 k ${perSecond(smallRates)}`,
      },
    ];
  },
};
