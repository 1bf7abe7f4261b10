import type { Bench, Finding } from '../lab/bench.ts';
import { fire } from '../lab/load.ts';
import type { Load } from '../lab/load.ts';
import { startControl, startService } from '../lab/processes.ts';
import { readRequests, readingConnections as connections } from '../lab/readers.ts';
import { inTurns } from '../lab/rounds.ts';
import { median, medianRatio, milliseconds, perSecond } from '../lab/statistics.ts';

const seconds = 1;

export const reads: Bench = {
  name: 'reads',
  asks: 'every GET endpoint at three sizes; analytics beside a bare server that runs "select 1"',
  async run(lab) {
    const { rounds, small, middle, large } = lab.plan;
    const sizes = [small, middle, large];
    const places = [];
    for (const size of sizes) {
      const dataset = await lab.dataset(size);
      const service = await startService(dataset.path);
      places.push({ service, requests: await readRequests(lab, dataset, service) });
    }
    const control = await startControl('select-one-server.ts', [(await lab.dataset(small)).path]);
    const endpoints = Object.keys(places[0]?.requests ?? {});

    const findings: Finding[] = [];
    for (const endpoint of endpoints) {
      const contestants: Record<string, () => Promise<Load>> = {};
      for (const [i, { service, requests }] of places.entries()) {
        const file = requests[endpoint];
        if (!file) throw new Error(`no requests for ${endpoint}`);
        const measure = () => fire(service.url, file, { connections, seconds });
        await measure();
        contestants[String(sizes[i])] = measure;
        contestants['S'] ??= () => fire(control.url, file, { connections, seconds });
      }
      const loads = await inTurns(rounds, contestants);
      findings.push(
        ...compare(
          endpoint,
          sizes.map((size) => loads[String(size)] ?? []),
          loads['S'] ?? [],
        ),
      );
    }
    for (const { service } of places) await service.stop();
    await control.stop();
    return findings;
  },
};

function compare(endpoint: string, bySize: readonly Load[][], control: readonly Load[]): Finding[] {
  const p99s = bySize.map((loads) => loads.map(({ p99Us }) => p99Us));
  const smallest = p99s[0] ?? [];
  const largest = p99s.at(-1) ?? [];
  const rates = (bySize.at(-1) ?? []).map((load) => load.perSecond);
  const controlRates = control.map((load) => load.perSecond);
  const findings: Finding[] = [
    {
      bench: 'reads',
      what: `${endpoint}: p99 at 10 M`,
      value: median(largest) / median(smallest),
      unit: '× at 10 k',
      goal: { atMost: 1.5 },
      detail: p99s.map(milliseconds).join(' → '),
    },
  ];
  if (!endpoint.startsWith('GET')) {
    findings.push({
      bench: 'reads',
      what: `${endpoint}: requests a second at 10 M`,
      value: medianRatio(rates, controlRates),
      unit: '× S',
      goal: { atLeast: 0.6 },
      detail: `${perSecond(rates)}; S ${perSecond(controlRates)}`,
    });
  }
  return findings;
}
