import type { Bench } from '../lab/bench.ts';
import { fire, writeRequests } from '../lab/load.ts';
import { startService } from '../lab/processes.ts';
import { readingConnections as connections } from '../lab/readers.ts';
import { inTurns } from '../lab/rounds.ts';
import { median, milliseconds } from '../lab/statistics.ts';

const rowsOfPage = 20;

export const pages: Bench = {
  name: 'pages',
  asks: 'the first, the middle and the last page of 10 M traces',
  async run(lab) {
    const { rounds, large } = lab.plan;
    const dataset = await lab.dataset(large);
    const service = await startService(dataset.path);
    const last = Math.ceil(dataset.traces / rowsOfPage);
    const page = (name: string, number: number) => {
      const path = `/traces?page=${number}&limit=${rowsOfPage}`;
      const file = writeRequests(lab.file(`${name}-page`), dataset.key, [{ method: 'GET', path }]);
      return () => fire(service.url, file, { connections, seconds: 1 });
    };
    const contestants = {
      first: page('first', 1),
      middle: page('middle', last >> 1),
      last: page('last', last),
    };
    await inTurns(1, contestants);
    const loads = await inTurns(rounds, contestants);
    await service.stop();

    const first = loads.first.map(({ p99Us }) => p99Us);
    return (['middle', 'last'] as const).map((name) => {
      const p99s = loads[name].map(({ p99Us }) => p99Us);
      return {
        bench: 'pages',
        what: `p99 of the ${name} page`,
        value: median(p99s) / median(first),
        unit: '× the first',
        goal: { atMost: 1.5 },
        detail: `${milliseconds(p99s)}; first ${milliseconds(first)}`,
      };
    });
  },
};
