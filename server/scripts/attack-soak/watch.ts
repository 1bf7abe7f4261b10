import { Agent } from 'node:http';
import { residentBytes } from './cgroup.ts';
import { callService } from '../../test/support/http-call.ts';

/** What can be observed of the service from outside during the soak. */
export interface Watch {
  /** Probes of /healthz that open a connection each, as most load balancers do. */
  fresh: ProbeTally;
  /** Probes of /healthz on one connection that is kept. */
  kept: ProbeTally;
  residentBytes: number;
  peakResidentBytes: number;
}

export interface ProbeTally {
  probes: number;
  /** Those without a good answer within a second. */
  late: number;
  slowestMs: number;
  /** The slowest since the last report. */
  recentMs: number;
}

const probeEveryMs = 250;
const probeMsMax = 1_000;
/** A probe that is late is still followed for a while, to tell how late. */
const probeGivenUpMs = 10_000;
const sampleEveryMs = 500;

export function startWatch(url: string, pid: number): { seen: Watch; stop(): void } {
  const nothing: ProbeTally = { probes: 0, late: 0, slowestMs: 0, recentMs: 0 };
  const seen: Watch = {
    fresh: { ...nothing },
    kept: { ...nothing },
    residentBytes: 0,
    peakResidentBytes: 0,
  };
  const agent = new Agent({ keepAlive: true });
  let isStopped = false;

  async function probe(tally: ProbeTally, kept?: Agent): Promise<void> {
    const startMs = performance.now();
    const call = { path: '/healthz', withinMs: probeGivenUpMs, ...(kept ? { agent: kept } : {}) };
    const isGood = await callService(url, call).then(
      ({ status }) => status === 200,
      () => false,
    );
    if (isStopped) return;
    const tookMs = performance.now() - startMs;
    tally.probes += 1;
    if (!isGood || tookMs > probeMsMax) tally.late += 1;
    tally.slowestMs = Math.max(tally.slowestMs, tookMs);
    tally.recentMs = Math.max(tally.recentMs, tookMs);
  }

  function sample(): void {
    const memory = residentBytes(pid);
    seen.residentBytes = memory?.now ?? 0;
    seen.peakResidentBytes = Math.max(seen.peakResidentBytes, memory?.peak ?? 0);
  }

  const timers = [
    setInterval(() => {
      void probe(seen.fresh);
      void probe(seen.kept, agent);
    }, probeEveryMs),
    setInterval(sample, sampleEveryMs),
  ];
  return {
    seen,
    stop() {
      isStopped = true;
      for (const timer of timers) clearInterval(timer);
      agent.destroy();
      sample();
    },
  };
}
