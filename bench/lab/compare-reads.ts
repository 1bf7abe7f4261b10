import type { Finding, Goal } from './bench.ts';
import type { Dataset, Lab } from './lab.ts';
import { fire } from './load.ts';
import type { Load } from './load.ts';
import { startService } from './processes.ts';
import type { Running } from './processes.ts';
import { readRequests, readingConnections as connections } from './readers.ts';
import { inTurns } from './rounds.ts';
import { median, medianRatio, milliseconds, perSecond } from './statistics.ts';

const seconds = 1;

/** The same reads on databases of several sizes, and analytics compared with a bare server that only runs `select 1` on the same kind of database. */
export interface ReadComparison {
  bench: string;
  /** From the smallest to the largest, each with its size as text. */
  datasets: readonly { dataset: Dataset; size: string }[];
  control: Running;
  controlName: string;
  /** For the rate of analytics relative to the control. */
  controlGoal: Goal | null;
}

/** Measures every GET endpoint alternately, with one service for each database. */
export async function compareReads(lab: Lab, comparison: ReadComparison): Promise<Finding[]> {
  const places = [];
  for (const { dataset } of comparison.datasets) {
    const service = await startService(dataset.url);
    places.push({ service, requests: await readRequests(lab, dataset, service) });
  }
  const findings: Finding[] = [];
  for (const endpoint of Object.keys(places[0]?.requests ?? {})) {
    const measures = places.map(({ service, requests }) => {
      const file = requests[endpoint];
      if (!file) throw new Error(`no requests for ${endpoint}`);
      return {
        ours: () => fire(service.url, file, { connections, seconds }),
        control: () => fire(comparison.control.url, file, { connections, seconds }),
      };
    });
    for (const { ours } of measures) await ours();
    const contestants: Record<string, () => Promise<Load>> = {};
    for (const [i, { ours, control }] of measures.entries()) {
      contestants[`size ${i}`] = ours;
      contestants['control'] ??= control;
    }
    const loads = await inTurns(lab.plan.rounds, contestants);
    const bySize = measures.map((_, i) => loads[`size ${i}`] ?? []);
    findings.push(...describe(comparison, endpoint, bySize, loads['control'] ?? []));
  }
  for (const { service } of places) await service.stop();
  return findings;
}

function describe(
  { bench, datasets, controlName, controlGoal }: ReadComparison,
  endpoint: string,
  bySize: readonly Load[][],
  control: readonly Load[],
): Finding[] {
  const [smallest, largest] = [datasets[0], datasets.at(-1)].map((place) => place?.size);
  const p99s = bySize.map((loads) => loads.map(({ p99Us }) => p99Us));
  const atLargest = bySize.at(-1) ?? [];
  const rates = atLargest.map((load) => load.perSecond);
  const p50 = milliseconds(atLargest.map(({ p50Us }) => p50Us));
  const findings: Finding[] = [
    {
      bench,
      what: `${endpoint}: p99 at ${largest}`,
      value: median(p99s.at(-1) ?? []) / median(p99s[0] ?? []),
      unit: `× at ${smallest}`,
      goal: { atMost: 1.5 },
      detail: `${p99s.map(milliseconds).join(' → ')}; p50 ${p50}, ${perSecond(rates)}`,
    },
  ];
  if (!endpoint.startsWith('GET')) {
    const controlRates = control.map((load) => load.perSecond);
    findings.push({
      bench,
      what: `${endpoint}: requests per second at ${largest}`,
      value: medianRatio(rates, controlRates),
      unit: `× ${controlName}`,
      goal: controlGoal,
      detail: `${perSecond(rates)}; ${controlName} ${perSecond(controlRates)}`,
    });
  }
  return findings;
}
