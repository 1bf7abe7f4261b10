/**
 * The service under all attacks at once beside honest teams: `npm run test:attack -- --minutes 15 --store sqlite|postgres [--seed 7]`. It ends by
 * itself, with exit code 0 only if nothing was lost or stored twice, the process survived, and honest clients were served.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { messageOf } from '../src/errors.ts';
import { chooseSeed, seededRandom } from '../test/support/seeded-random.ts';
import { runCli } from '../test/support/cli.ts';
import type { AttackTally } from './attack-soak/attack-socket.ts';
import { openMemoryLimit } from './attack-soak/cgroup.ts';
import type { MemoryLimit } from './attack-soak/cgroup.ts';
import type { HonestTally } from './attack-soak/honest-client.ts';
import { checkStore } from './attack-soak/store-check.ts';
import { readRequestLog } from '../test/support/request-log.ts';
import { startProgram } from './attack-soak/program.ts';
import { failuresOf, finalReport, progressLine } from './attack-soak/report.ts';
import type { SoakResult } from './attack-soak/report.ts';
import { setScene } from './attack-soak/scene.ts';
import type { Cast, Scene } from './attack-soak/scene.ts';
import { startSoakService } from './attack-soak/soak-service.ts';
import type { SoakService } from './attack-soak/soak-service.ts';
import { makeSoakStore } from './attack-soak/soak-store.ts';
import type { SoakStore } from './attack-soak/soak-store.ts';
import { startWatch } from './attack-soak/watch.ts';

const memoryLimitBytes = 1024 ** 3;
const reportEveryMs = 30_000;
/** A log that is not read for this long, again and again. */
const logStallMs = 15_000;
const logPauseMsMin = 10_000;
const logPauseMsMax = 40_000;
/** An honest operation may take a minute with its retries. */
const honestEndMsMax = 90_000;
const attackEndMsMax = 30_000;
const serviceEndMsMax = 60_000;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    store: { type: 'string', default: 'sqlite' },
    seed: { type: 'string', default: String(chooseSeed()) },
    help: { type: 'boolean', default: false },
  },
});
const { store: storeKind } = values;
const isUsable = /^[1-9][0-9]{0,3}$/.test(values.minutes) && /^[0-9]{1,10}$/.test(values.seed);
if (values.help || !isUsable || (storeKind !== 'sqlite' && storeKind !== 'postgres')) {
  print('Usage: npm run test:attack -- [--minutes 60] [--store sqlite|postgres] [--seed N]');
  process.exit(values.help ? 0 : 2);
}
const minutes = Number(values.minutes);
const seed = Number(values.seed);

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => interrupted.abort());
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function runSoak(store: SoakStore, limit: MemoryLimit): Promise<SoakResult> {
  const cast = await setScene(store.database);
  const service = await startSoakService(store.name, limit.wrapper);
  try {
    return await soak(store, limit, cast, service);
  } finally {
    await service.stop(serviceEndMsMax);
  }
}

async function soak(
  store: SoakStore,
  limit: MemoryLimit,
  cast: Cast,
  service: SoakService,
): Promise<SoakResult> {
  print(`the service runs as process ${service.pid} at ${service.url}`);
  const watch = startWatch(service.url, service.pid);
  const scene: Scene = {
    ...cast,
    url: service.url,
    seed,
    requestLogPath: join(store.folder, 'requests.log'),
    endsAtMs: Date.now() + minutes * 60_000,
  };
  const mistakes: string[] = [];
  const load = await runLoad(scene, service, store.folder, watch.seen);
  if (interrupted.signal.aborted) mistakes.push('the soak was interrupted');
  watch.stop();
  const unexpectedEnd = service.ending();
  if (unexpectedEnd !== null) {
    const lines = service.logTail().trimEnd().split('\n').slice(-3);
    print(`the service ended (${unexpectedEnd}); its last lines:\n${lines.join('\n')}`);
  }
  const memory = {
    cgroupPeakBytes: limit.peakBytes(),
    outOfMemoryKills: limit.outOfMemoryKills(),
  };
  await service.stop(serviceEndMsMax);
  print('reading every acknowledged trace back after a restart');
  const contents = await checkAfterRestart(store.name, scene).catch((error: unknown) => {
    mistakes.push(`the check of the store failed: ${messageOf(error)}`);
    return null;
  });
  const verify = await runCli(['verify', '--database', store.name]);
  return {
    minutes,
    store: storeKind,
    seed,
    memoryLimit: describeLimit(limit),
    memoryLimitBytes,
    isMemoryWatched: limit.kind === 'watched',
    unexpectedEnd,
    ...memory,
    ...load,
    watch: watch.seen,
    contents,
    verify: { code: verify.code, text: `${verify.stdout}${verify.stderr}`.trim().slice(-500) },
    mistakes,
  };
}

/** Honest clients and attacks side by side, until the time is over or the service is gone. */
async function runLoad(
  scene: Scene,
  service: SoakService,
  folder: string,
  watch: SoakResult['watch'],
): Promise<Pick<SoakResult, 'ranS' | 'honest' | 'attacks' | 'logStalls'>> {
  const scenePath = join(folder, 'scene.json');
  writeFileSync(scenePath, JSON.stringify(scene), { mode: 0o600 });
  const honest = startProgram<HonestTally>('honest-load.ts', scenePath);
  const attacks = startProgram<AttackTally>('attacker.ts', scenePath);
  const startMs = performance.now();
  const reporting = setInterval(() => {
    const seconds = (performance.now() - startMs) / 1000;
    print(progressLine(seconds, watch, honest.report(), attacks.report()));
    watch.fresh.recentMs = 0;
    watch.kept.recentMs = 0;
  }, reportEveryMs);
  const over = new AbortController();
  const stalls = stallLog(service, over.signal);
  const signal = AbortSignal.any([interrupted.signal, over.signal]);
  const time = sleep(scene.endsAtMs - Date.now(), undefined, { signal }).catch(() => {});
  await Promise.race([time, service.ended]);
  const ranS = (performance.now() - startMs) / 1000;
  over.abort();
  await Promise.all([attacks.stop(attackEndMsMax), honest.stop(honestEndMsMax)]);
  clearInterval(reporting);
  return { ranS, honest: honest.report(), attacks: attacks.report(), logStalls: await stalls };
}

/** Repeatedly leaves the log pipe unread for a while; returns how often. */
async function stallLog(service: SoakService, over: AbortSignal): Promise<number> {
  const random = seededRandom(seed);
  const pause = (ms: number): Promise<void> =>
    sleep(ms, undefined, { signal: over }).catch(() => {});
  let stalls = 0;
  while (!over.aborted) {
    await pause(logPauseMsMin + random() * (logPauseMsMax - logPauseMsMin));
    if (over.aborted) break;
    service.readLog(false);
    await pause(logStallMs);
    service.readLog(true);
    stalls += 1;
  }
  return stalls;
}

async function checkAfterRestart(database: string, scene: Scene) {
  const service = await startSoakService(database, []);
  try {
    return await checkStore(service.url, scene.honestTeams, readRequestLog(scene.requestLogPath));
  } finally {
    await service.stop(serviceEndMsMax);
  }
}

function describeLimit({ kind, reason }: MemoryLimit): string {
  return kind === 'watched'
    ? `1 GiB, NOT ENFORCED, only watched from outside (no cgroup: ${reason})`
    : `1 GiB, enforced by ${kind}`;
}

print(`${minutes} min on ${storeKind}, seed ${seed}`);
const limit = openMemoryLimit(memoryLimitBytes);
print(`memory limit: ${describeLimit(limit)}`);
const store = await makeSoakStore(storeKind);
try {
  const result = await runSoak(store, limit);
  print(finalReport(result));
  process.exitCode = failuresOf(result).length === 0 ? 0 : 1;
} finally {
  await store.remove();
  limit.remove();
}
process.exit();
