import type { Bench } from '../lab/bench.ts';
import { smallPayloads } from '../lab/bodies.ts';
import { fire, writeRequests } from '../lab/load.ts';
import { startService } from '../lab/processes.ts';
import { readingConnections } from '../lab/readers.ts';
import { inTurns } from '../lab/rounds.ts';
import { median, milliseconds, perSecond } from '../lab/statistics.ts';
import { postRequests, writingConnections } from '../lab/writers.ts';

const readPaths = [
  '/analytics/overview',
  '/traces?omit=input,output',
  '/analytics/daily',
  '/analytics/by-model',
  '/traces',
  '/analytics/by-feature',
];

export const mixed: Bench = {
  name: 'mixed',
  asks: 'reads while clients write as fast as they can, compared with reads alone',
  async run(lab) {
    const { rounds, seconds, middle } = lab.plan;
    const dataset = await lab.dataset(middle);
    const service = await startService(dataset.url);
    const writes = postRequests(lab, 'mixed-writes', [dataset.key], smallPayloads);
    const reads = writeRequests(
      lab.file('mixed-reads'),
      readPaths.map((path) => ({ method: 'GET', path, key: dataset.key })),
    );
    const read = () => fire(service.url, reads, { connections: readingConnections, seconds });
    const write = () => fire(service.url, writes, { connections: writingConnections, seconds });
    await read();
    const { idle, busy } = await inTurns(rounds, {
      idle: read,
      async busy() {
        const [load, written] = await Promise.all([read(), write()]);
        return { ...load, writesPerSecond: written.perSecond };
      },
    });
    await service.stop();

    const idleP99s = idle.map(({ p99Us }) => p99Us);
    const busyP99s = busy.map(({ p99Us }) => p99Us);
    return [
      {
        bench: 'mixed',
        what: 'p99 of reads during writes',
        value: median(busyP99s) / median(idleP99s),
        unit: '× idle',
        goal: { atMost: 3 },
        detail:
          `${milliseconds(busyP99s)}; idle ${milliseconds(idleP99s)}; meanwhile ` +
          `${perSecond(busy.map((load) => load.perSecond))} reads and ` +
          `${perSecond(busy.map((load) => load.writesPerSecond))} writes`,
      },
    ];
  },
};
