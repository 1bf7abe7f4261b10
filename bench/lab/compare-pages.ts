import type { Finding } from './bench.ts';
import type { Dataset, Lab } from './lab.ts';
import { fire, writeRequests } from './load.ts';
import { startService } from './processes.ts';
import { readingConnections as connections } from './readers.ts';
import { inTurns } from './rounds.ts';
import { median, milliseconds } from './statistics.ts';

const rowsOfPage = 20;

/** Compares the middle and the last page of a database with the first. */
export async function comparePages(lab: Lab, bench: string, dataset: Dataset): Promise<Finding[]> {
  const service = await startService(dataset.url);
  const last = Math.ceil(dataset.traces / rowsOfPage);
  const page = (name: string, number: number) => {
    const path = `/traces?page=${number}&limit=${rowsOfPage}`;
    const file = writeRequests(lab.file(`${dataset.name}-${name}-page`), [
      { method: 'GET', path, key: dataset.key },
    ]);
    return () => fire(service.url, file, { connections, seconds: 1 });
  };
  const contestants = {
    first: page('first', 1),
    middle: page('middle', last >> 1),
    last: page('last', last),
  };
  await inTurns(1, contestants);
  const loads = await inTurns(lab.plan.rounds, contestants);
  await service.stop();

  const first = loads.first.map(({ p99Us }) => p99Us);
  return (['middle', 'last'] as const).map((name) => {
    const p99s = loads[name].map(({ p99Us }) => p99Us);
    return {
      bench,
      what: `p99 of the ${name} page`,
      value: median(p99s) / median(first),
      unit: '× the first',
      goal: { atMost: 1.5 },
      detail: `${milliseconds(p99s)}; first ${milliseconds(first)}`,
    };
  });
}
