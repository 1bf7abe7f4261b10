import type { Bench, Finding } from '../lab/bench.ts';
import { smallPayloads } from '../lab/bodies.ts';
import type { FileDataset, Lab } from '../lab/lab.ts';
import { fire, writeRequests } from '../lab/load.ts';
import type { RequestFile } from '../lab/load.ts';
import { cpuSeconds, startControl, startService } from '../lab/processes.ts';
import type { Running } from '../lab/processes.ts';
import { readingConnections } from '../lab/readers.ts';
import { derivedShare, questionTimes, untilRolledUp } from '../lab/rollup-files.ts';
import { inTurns } from '../lab/rounds.ts';
import { median, medianRatio, milliseconds, perSecond } from '../lab/statistics.ts';
import { postRequests, writingConnections as connections } from '../lab/writers.ts';

const bench = 'rollups';
/** Of 100, half would be asked before V8 has compiled what answers them. */
const questions = 300;

export const rollups: Bench = {
  name: bench,
  asks: 'CPU time of a POST with everything that follows it, overview during writes, questions about a month and a year, and the size of rollups',
  async run(lab) {
    return [
      await cpuTime(lab),
      ...(await overviewDuringWrites(lab)),
      ...(await questionsBySize(lab)),
      await size(lab),
    ];
  },
};

/** From the CPU clock of the process, since the rate depends on what the load generator leaves of two cores. */
async function cpuTime(lab: Lab): Promise<Finding> {
  const { rounds, seconds, warmUpSeconds } = lab.plan;
  const database = await lab.emptyDatabase('rollups-cpu');
  const requests = postRequests(lab, 'rollups-cpu', [database.key], smallPayloads);
  const echo = await startControl('echo-server.ts');
  const service = await startService(database.url);
  for (const { url } of [echo, service]) {
    await fire(url, requests, { connections, seconds: warmUpSeconds });
  }
  const none = async (): Promise<void> => {};
  const { E, ours } = await inTurns(rounds, {
    E: () => cpuPerRequest(echo, requests, seconds, none),
    ours: () => cpuPerRequest(service, requests, seconds, () => untilRolledUp(database.path)),
  });
  await echo.stop();
  await service.stop();
  return {
    bench,
    what: 'CPU time per POST, rolls and lookups included',
    value: medianRatio(ours, E),
    unit: '× E',
    goal: { atMost: 3.2 },
    detail: `${microseconds(ours)}; E ${microseconds(E)}`,
  };
}

/** Seconds of CPU time per request, with what the process still does after the last reply. */
async function cpuPerRequest(
  { url, pid }: Running,
  requests: RequestFile,
  seconds: number,
  settle: () => Promise<void>,
): Promise<number> {
  await settle();
  const before = cpuSeconds(pid);
  const load = await fire(url, requests, { connections, seconds });
  await settle();
  return (cpuSeconds(pid) - before) / load.requests;
}

function microseconds(seconds: readonly number[]): string {
  return `${Math.round(median(seconds) * 1e6)} µs`;
}

/**
 * Readers, writers and the service share two cores, and all connections share an event loop. So E, which stores nothing, shows what of the
 * ratio is due to that: the same load, with a tiny body in place of the question.
 */
async function overviewDuringWrites(lab: Lab): Promise<Finding[]> {
  const dataset = await lab.dataset(lab.plan.middle);
  const { key } = dataset;
  const writes = postRequests(lab, 'rollups-writes', [key], smallPayloads);
  const overview = writeRequests(lab.file('rollups-overview'), [
    { method: 'GET', path: '/analytics/overview', key },
  ]);
  const tiny = writeRequests(lab.file('rollups-tiny'), [
    { method: 'POST', path: '/', key, body: '{}' },
  ]);
  const service = await startService(dataset.url);
  const echo = await startControl('echo-server.ts');
  const ours = await idleAndBusy(lab, service, overview, writes);
  const ofEcho = await idleAndBusy(lab, echo, tiny, writes);
  await service.stop();
  await echo.stop();
  return [
    { bench, what: 'overview: p99 during writes', goal: { atMost: 2 }, ...ours },
    { bench, what: 'E: p99 during writes', goal: null, ...ofEcho },
  ];
}

async function idleAndBusy(
  { plan: { rounds, seconds, warmUpSeconds } }: Lab,
  { url }: Running,
  reads: RequestFile,
  writes: RequestFile,
): Promise<Pick<Finding, 'value' | 'unit' | 'detail'>> {
  const readFor = (forSeconds: number) =>
    fire(url, reads, { connections: readingConnections, seconds: forSeconds });
  const both = (forSeconds: number) =>
    Promise.all([readFor(forSeconds), fire(url, writes, { connections, seconds: forSeconds })]);
  await both(warmUpSeconds);
  const { idle, busy } = await inTurns(rounds, {
    idle: () => readFor(seconds),
    async busy() {
      const [load, written] = await both(seconds);
      return { ...load, writesPerSecond: written.perSecond };
    },
  });
  const [idleP99s, busyP99s] = [idle, busy].map((loads) => loads.map(({ p99Us }) => p99Us));
  return {
    value: median(busyP99s ?? []) / median(idleP99s ?? []),
    unit: '× idle',
    detail:
      `${milliseconds(busyP99s ?? [])}; idle ${milliseconds(idleP99s ?? [])}; meanwhile ` +
      `${perSecond(busy.map((load) => load.writesPerSecond))} writes`,
  };
}

async function questionsBySize(lab: Lab): Promise<Finding[]> {
  const small = await rolledUp(lab, lab.plan.small);
  const large = await rolledUp(lab, lab.plan.large);
  const measured = await inTurns(lab.plan.rounds, {
    small: () => questionTimes(small.path, questions),
    large: () => questionTimes(large.path, questions),
  });
  const [smallMs, largeMs] = [measured.small, measured.large].map((runs) =>
    runs.map(({ monthMs }) => monthMs),
  );
  const yearMs = median(measured.large.map((run) => run.yearMs));
  return [
    {
      bench,
      what: 'by model over 30 days at 10 M',
      value: medianRatio(largeMs ?? [], smallMs ?? []),
      unit: '× at 10 k',
      goal: { atMost: 1.5 },
      detail: `${median(largeMs ?? []).toFixed(1)} ms; at 10 k ${median(smallMs ?? []).toFixed(1)} ms`,
    },
    {
      bench,
      what: 'a year by model with p95 at 10 M',
      value: yearMs,
      unit: 'ms',
      goal: { atMost: 100 },
      detail: '',
    },
  ];
}

/** A filled database in which a server has rolled up what the filling left. */
async function rolledUp(lab: Lab, traces: number): Promise<FileDataset> {
  const dataset = await lab.dataset(traces);
  const service = await startService(dataset.url);
  await untilRolledUp(dataset.path);
  await service.stop();
  return dataset;
}

async function size(lab: Lab): Promise<Finding> {
  const { path } = await rolledUp(lab, lab.plan.large);
  const { share, bytes } = derivedShare(path);
  return {
    bench,
    what: 'rollups and lookups at 10 M traces in a year',
    value: 100 * share,
    unit: '% of both files',
    goal: { atMost: 8 },
    detail: `of ${(bytes / 1e9).toFixed(1)} GB`,
  };
}
