import type { Bench } from '../lab/bench.ts';
import { smallPayloads, traceBodies } from '../lab/bodies.ts';
import { fire, writeRequests } from '../lab/load.ts';
import { startService } from '../lab/processes.ts';
import { inTurns } from '../lab/rounds.ts';
import { storeAlone } from '../lab/store-alone.ts';
import { median, perSecond } from '../lab/statistics.ts';
import { postRequests, writingConnections } from '../lab/writers.ts';

const tracesOfBatch = 100;
const connections = 8;

export const batch: Bench = {
  name: 'batch',
  asks: 'POST /traces/batch with 100 traces of 1 KB, compared with single POSTs and with the store alone',
  async run(lab) {
    const { rounds, seconds, warmUpSeconds } = lab.plan;
    const database = await lab.emptyDatabase('batch');
    const service = await startService(database.url);
    const singles = postRequests(lab, 'singles', [database.key], smallPayloads);
    const bodies = traceBodies(20 * tracesOfBatch, smallPayloads);
    const batches = writeRequests(
      lab.file('batches'),
      Array.from({ length: 20 }, (_, i) => ({
        method: 'POST',
        path: '/traces/batch?omit=input,output',
        key: database.key,
        body: `{"traces":[${bodies.slice(i * tracesOfBatch, (i + 1) * tracesOfBatch).join(',')}]}`,
      })),
    );
    const single = () => fire(service.url, singles, { connections: writingConnections, seconds });
    const many = () => fire(service.url, batches, { connections, seconds });
    await fire(service.url, batches, { connections, seconds: warmUpSeconds });
    await single();
    const loads = await inTurns(rounds, {
      single,
      many,
      D: () => storeAlone(lab.file('batch-store-alone.db'), seconds),
    });
    await service.stop();

    const singleRates = loads.single.map((load) => load.perSecond);
    const batchRates = loads.many.map((load) => load.perSecond * tracesOfBatch);
    // Ten times the rate of single POSTs, or half the rate of the store alone, whichever is lower.
    const ratios = batchRates.map(
      (rate, i) => rate / Math.min(10 * (singleRates[i] ?? NaN), 0.5 * (loads.D[i] ?? NaN)),
    );
    return [
      {
        bench: 'batch',
        what: 'traces per second',
        value: median(ratios),
        unit: '× the lower of 10 × single and 0.5 × D',
        goal: { atLeast: 1 },
        detail: `${perSecond(batchRates)}; single ${perSecond(singleRates)}; D ${perSecond(loads.D)}`,
      },
    ];
  },
};
