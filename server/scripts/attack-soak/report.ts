import type { AttackTally } from './attack-socket.ts';
import { attackNames, unansweredAttacks } from './attack-names.ts';
import type { HonestTally } from './honest-client.ts';
import type { StoreCheck } from './store-check.ts';
import type { ProbeTally, Watch } from './watch.ts';

/** Everything that a run found out. */
export interface SoakResult {
  /** How long the load was meant to go on, and how long it did. */
  minutes: number;
  ranS: number;
  store: string;
  seed: number;
  memoryLimit: string;
  memoryLimitBytes: number;
  isMemoryWatched: boolean;
  /** How the service ended before it was told to; null if it ran to the end under one process id. */
  unexpectedEnd: string | null;
  outOfMemoryKills: number;
  cgroupPeakBytes: number | null;
  logStalls: number;
  watch: Watch;
  honest: HonestTally | null;
  attacks: AttackTally | null;
  contents: StoreCheck | null;
  /** What `tracetally verify` printed and its exit code. */
  verify: { code: number | null; text: string } | null;
  /** Failures of the soak itself. */
  mistakes: readonly string[];
}

const errorRateMax = 0.001;

/** Why a run did not pass; empty if it did. A run that did not really take place does not pass either. */
export function failuresOf(result: SoakResult): string[] {
  const { honest, attacks, contents, verify, watch } = result;
  const failures = [...result.mistakes];
  if (result.unexpectedEnd !== null) failures.push(`the service ended: ${result.unexpectedEnd}`);
  if (result.isMemoryWatched && watch.peakResidentBytes > result.memoryLimitBytes) {
    failures.push('the service used more memory than the limit');
  }
  if (contents === null) failures.push('the store was not checked');
  else {
    if (contents.lost.length > 0)
      failures.push(`${contents.lost.length} acknowledged traces are lost`);
    if (contents.twice.length > 0)
      failures.push(`${contents.twice.length} traces are stored twice`);
    if (contents.miscounted > 0) failures.push(`${contents.miscounted} teams are counted wrongly`);
  }
  if (honest === null || honest.operations === 0 || honest.acknowledged === 0) {
    failures.push('the honest clients stored nothing');
  } else {
    if (honest.failed / honest.operations >= errorRateMax) {
      failures.push(`${honest.failed} of ${honest.operations} honest operations failed`);
    }
    if (honest.stale > 0) failures.push(`${honest.stale} reads missed what was acknowledged`);
  }
  for (const name of attackNames) {
    if (!attacks?.waves[name]) failures.push(`the attack "${name}" was never finished`);
    else if (!attacks.answered[name] && !unansweredAttacks.has(name)) {
      failures.push(
        `the attack "${name}" never got an answer, so it may not have reached the service`,
      );
    }
  }
  failures.push(
    ...Object.keys(attacks?.mistakes ?? {}).map((text) => `the attacker failed: ${text}`),
  );
  if (result.logStalls === 0) failures.push('the log pipe was never left unread');
  if (verify?.code !== 0) failures.push(`verify: ${verify?.text ?? 'did not run'}`);
  return failures;
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;
const grouped = (value: number): string => value.toLocaleString('en-US');

function percent(part: number, whole: number): string {
  return `${whole === 0 ? '0' : ((100 * part) / whole).toFixed(3)} %`;
}

function probed({ probes, late, slowestMs }: ProbeTally): string {
  return `slowest ${Math.round(slowestMs)} ms, ${grouped(late)} of ${grouped(probes)} over 1 s or without answer`;
}

function listed(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(([name, times]) => `${name} ${grouped(times)}`);
  return parts.length === 0 ? 'none' : parts.join(', ');
}

/** One line while it runs. */
export function progressLine(
  seconds: number,
  watch: Watch,
  honest: HonestTally | null,
  attacks: AttackTally | null,
): string {
  const waves = Object.values(attacks?.waves ?? {}).reduce((sum, times) => sum + times, 0);
  return [
    `${String(Math.round(seconds)).padStart(5)} s`,
    `honest ${grouped(honest?.requests ?? 0)} requests, ${grouped(honest?.serverErrors ?? 0)} 5xx, ${grouped(honest?.noAnswers ?? 0)} without answer, ${grouped(honest?.failed ?? 0)} operations failed`,
    `acknowledged ${grouped(honest?.acknowledged ?? 0)}`,
    `attacks ${grouped(attacks?.requests ?? 0)} requests in ${waves} waves`,
    `RSS ${megabytes(watch.residentBytes)}`,
    `slowest healthz ${Math.round(watch.fresh.recentMs)} ms, ${watch.fresh.late} over 1 s`,
  ].join('; ');
}

/** The whole result as a table, and whether it passed. */
export function finalReport(result: SoakResult): string {
  const { honest, attacks, contents, verify, watch } = result;
  const operations = honest?.operations ?? 0;
  const requests = honest?.requests ?? 0;
  const rows: [string, string][] = [
    [
      'duration',
      `${Math.round(result.ranS)} s of ${result.minutes} min on ${result.store}, seed ${result.seed}`,
    ],
    ['memory limit', result.memoryLimit],
    ['acknowledged', grouped(contents?.acknowledged ?? honest?.acknowledged ?? 0)],
    ['lost', contents === null ? 'unknown' : grouped(contents.lost.length)],
    ['stored twice', contents === null ? 'unknown' : grouped(contents.twice.length)],
    ['reads that missed acknowledged traces', grouped(honest?.stale ?? 0)],
    ['honest requests', grouped(requests)],
    [
      'honest operations that failed',
      `${grouped(honest?.failed ?? 0)} of ${grouped(operations)}, ${percent(honest?.failed ?? 0, operations)}`,
    ],
    ['single requests with 5xx', percent(honest?.serverErrors ?? 0, requests)],
    ['single requests without an answer', percent(honest?.noAnswers ?? 0, requests)],
    ['slowest honest request', `${Math.round(honest?.slowestMs ?? 0)} ms`],
    ['reasons', listed(honest?.reasons ?? {})],
    ['attack requests', grouped(attacks?.requests ?? 0)],
    ['attack waves', listed({ ...attacks?.waves, 'log stalls': result.logStalls })],
    ['answers to attacks', listed(attacks?.answers ?? {})],
    [
      'restarts',
      result.unexpectedEnd === null ? '0' : `the service ended: ${result.unexpectedEnd}`,
    ],
    ['kills for lack of memory', grouped(result.outOfMemoryKills)],
    ['peak RSS', megabytes(watch.peakResidentBytes)],
    [
      'peak of the cgroup with page cache',
      result.cgroupPeakBytes === null ? 'no cgroup' : megabytes(result.cgroupPeakBytes),
    ],
    ['healthz, new connections', probed(watch.fresh)],
    ['healthz, one kept connection', probed(watch.kept)],
    ['verify', verify === null ? 'did not run' : verify.text],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const failures = failuresOf(result);
  return [
    '',
    ...rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`),
    '',
    failures.length === 0
      ? 'PASSED'
      : `FAILED\n${failures.map((text) => `  - ${text}`).join('\n')}`,
    '',
  ].join('\n');
}
