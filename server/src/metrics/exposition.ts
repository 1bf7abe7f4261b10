import { Registry, collectDefaultMetrics } from '@prometheus-io/client';
import type { Metric } from '@prometheus-io/client';
import type { Distribution } from './counts.ts';
import { declarations } from './declarations.ts';
import type { Declaration, MetricName } from './declarations.ts';
import type { Recorder } from './recorder.ts';
import { openTeamNames } from './team-names.ts';
import type { FindTeamName } from './team-names.ts';

/** What is read when the metrics are asked for, not counted. */
export interface Readings {
  version: string;
  store: string;
  bodyBytes(): number;
  replyBytes(): number;
  waiting(): { rows: number; bytes: number };
  /** Asked for only when a team first appears in the metrics. Null if there is no such team any more. */
  teamName: FindTeamName;
}

export interface Exposition {
  contentType: string;
  /** All metrics as text. */
  text(): Promise<string>;
}

interface Sample {
  /** Other than that of the metric, for the parts of a histogram. */
  metricName?: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** Every sample wakes an idle process: at 20 ms they take 0.8 % of a core, at 50 ms 0.4 %. A delay is measured this much too short at most. */
const eventLoopSampleMs = 50;

/** Presents the counts in the text format of Prometheus, together with the library's metrics of the process and the event loop. */
export function openExposition(recorder: Recorder, readings: Readings): Exposition {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopSampleMs });
  const samples = { ...countedSamples(recorder), ...readSamples(recorder, readings) };
  for (const name of Object.keys(declarations) as MetricName[]) {
    register(registry, declarations[name], samples[name]);
  }
  return { contentType: registry.contentType, text: () => registry.metrics() };
}

type Read = () => readonly Sample[] | Promise<readonly Sample[]>;

/** A metric of the registry whose values are read from our counts. The registry asks for a name and `get`, and formats the rest. */
function register(registry: Registry, { kind, name, help }: Declaration, read: Read): void {
  const metric = { name, get: async () => ({ name, help, type: kind, values: await read() }) };
  registry.registerMetric(metric as unknown as Metric);
}

function countedSamples(recorder: Recorder) {
  const { failures, signals, storeErrors, commits, rolls, routes } = recorder;
  return {
    requests: () =>
      [...routes.values()].flatMap(({ method, route, counts }) =>
        [...counts.byStatus].map(([status, value]) => ({
          labels: { method, route, status: String(status) },
          value,
        })),
      ),
    requestSeconds: () =>
      [...routes.values()]
        .filter(({ counts }) => counts.byStatus.size > 0)
        .flatMap(({ method, route, counts }) =>
          histogram('requestSeconds', counts.seconds, { method, route }),
        ),
    failures: () => failures.entries.map(([code, value]) => ({ labels: { code }, value })),
    signals: () => signals.entries.map(([result, value]) => ({ labels: { result }, value })),
    storeErrors: () => storeErrors.entries.map(([code, value]) => ({ labels: { code }, value })),
    commitSeconds: () => histogram('commitSeconds', commits.seconds),
    commitRows: () => histogram('commitRows', commits.rows),
    commitBytes: () => histogram('commitBytes', commits.bytes),
    rolledRows: () => only(rolls.rows),
    rollSeconds: () => histogram('rollSeconds', rolls.seconds),
    rollFailures: () => only(rolls.failures),
  } satisfies Partial<Record<MetricName, Read>>;
}

function readSamples(recorder: Recorder, readings: Readings) {
  const { version, store } = readings;
  const teams = openTeamSamples(recorder, readings);
  return {
    buildInfo: () => [{ labels: { version, store }, value: 1 }],
    keyLookups: () =>
      Object.entries(recorder.keyLookups).flatMap(([credential, results]) =>
        Object.entries(results).map(([result, value]) => ({
          labels: { credential, result },
          value,
        })),
      ),
    bodyBytes: () => only(readings.bodyBytes()),
    replyBytes: () => only(readings.replyBytes()),
    tracesStored: () => only(recorder.tracesStored),
    waitingRows: () => only(readings.waiting().rows),
    waitingBytes: () => only(readings.waiting().bytes),
    storeBroken: () => only(recorder.isBroken ? 1 : 0),
    tailRows: () => only(recorder.tailRows),
    teamTraces: () => teams('traces'),
    teamCost: () => teams('dollars'),
  } satisfies Partial<Record<MetricName, Read>>;
}

function openTeamSamples({ teamUsage }: Recorder, { teamName }: Readings) {
  const namesOf = openTeamNames(teamName);

  return async (part: 'traces' | 'dollars'): Promise<readonly Sample[]> => {
    if (teamUsage === null) return [];
    const { teams, others } = teamUsage;
    const names = await namesOf(teams.keys());
    const samples = [...teams].flatMap(([id, usage]) => {
      const team = names.get(id);
      return team === undefined ? [] : [{ labels: { team }, value: usage[part] }];
    });
    // All teams past the limit share a series without a label: any name could be that of a team.
    return others === null ? samples : [...samples, { labels: {}, value: others[part] }];
  };
}

function only(value: number): Sample[] {
  return [{ labels: {}, value }];
}

function histogram(
  of: MetricName,
  { bounds, sum, cumulative }: Distribution,
  labels: Readonly<Record<string, string>> = {},
): Sample[] {
  const { name } = declarations[of];
  const buckets = cumulative.map((value, i) => ({
    metricName: `${name}_bucket`,
    labels: { ...labels, le: i < bounds.length ? String(bounds[i]) : '+Inf' },
    value,
  }));
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: cumulative.at(-1) ?? 0 },
  ];
}
