import { counted } from '../core/counted.ts';
import { RollupBatch, measureNames, noMeasures, rollupName } from '../core/rollup.ts';
import type { Measures, RollupDelta } from '../core/rollup.ts';
import { uuidMs } from '../core/uuid.ts';
import { limits } from '../limits.ts';
import type { AuditedTrace, Auditor, TeamContents } from '../store/audit.ts';

/**
 * Recomputes everything from the team's traces, compares it with the sequence, the counters and every sum, and decodes every payload.
 * The differences are sentences.
 */
export async function verifyTeam(
  store: Auditor,
  teamId: string,
  onProgress: (traces: number) => void = () => {},
) {
  return store.audit(teamId, async (contents) => {
    const { traces, measures, differences } = await recountTraces(contents, onProgress);
    return { traces, differences: [...differences, ...(await compareRollups(contents, measures))] };
  });
}

async function recountTraces(contents: TeamContents, onProgress: (traces: number) => void) {
  const differences: string[] = [];
  /** By rollup name. */
  const measures = new Map<string, Measures>();
  const damages = openDamageList();
  let expectedSeq = contents.firstSeq;
  let lastUs = 0;
  let traces = 0;
  for await (const chunk of contents.traces) {
    const batch = new RollupBatch();
    for (const trace of chunk) {
      if (trace.seq !== expectedSeq) {
        differences.push(`sequence: expected trace ${expectedSeq}, found ${trace.seq}`);
      }
      if (uuidMs(trace.id) !== Math.floor(trace.createdAtUs / 1000)) {
        differences.push(
          `trace ${trace.seq}: the time in its id ${trace.id} does not match its created_at`,
        );
      }
      damages.add(trace);
      expectedSeq = trace.seq + 1;
      lastUs = trace.createdAtUs;
      batch.add(trace, trace.createdAtUs);
    }
    for (const delta of batch.deltas()) addDelta(measures, delta);
    traces += chunk.length;
    onProgress(traces);
  }
  if (expectedSeq - 1 !== contents.lastSeq) {
    differences.push(
      `counter: last sequence number is ${contents.lastSeq}, but the last trace has ${expectedSeq - 1}`,
    );
  }
  if (traces > 0 && lastUs !== contents.lastUs) {
    differences.push(
      `counter: last time is ${contents.lastUs}, but the time of the last trace is ${lastUs}`,
    );
  }
  return { traces, measures, differences: [...differences, ...damages.sentences()] };
}

/** Collects damaged traces: lists the first ones and counts the others. */
export function openDamageList() {
  const named: string[] = [];
  let unnamed = 0;
  return {
    add({ seq, id, damaged }: Pick<AuditedTrace, 'seq' | 'id' | 'damaged'>): void {
      if (damaged.length === 0) return;
      if (named.length < limits.damagedListMax) {
        named.push(`trace ${seq} (${id}): damaged ${damaged.join(', ')}`);
      } else {
        unnamed += 1;
      }
    },
    sentences: (): string[] =>
      unnamed === 0 ? named : [...named, counted(unnamed, 'more damaged trace')],
  };
}

function addDelta(measures: Map<string, Measures>, delta: RollupDelta): void {
  const name = rollupName(delta);
  const sum = measures.get(name) ?? { ...noMeasures };
  for (const measure of measureNames) sum[measure] += BigInt(delta.measures[measure]);
  measures.set(name, sum);
}

async function compareRollups(
  contents: TeamContents,
  expected: Map<string, Measures>,
): Promise<string[]> {
  const differences: string[] = [];
  const unseen = new Map(expected);
  for await (const chunk of contents.rollups) {
    for (const stored of chunk) {
      const name = rollupName(stored);
      const recounted = unseen.get(name);
      unseen.delete(name);
      if (!recounted) differences.push(`rollup ${name}: there are no traces for it`);
      for (const measure of measureNames) {
        const [found, right] = [stored.measures[measure], recounted?.[measure] ?? 0n];
        if (found !== right) {
          differences.push(
            `rollup ${name}: ${measure} is ${found}, but the traces add up to ${right}`,
          );
        }
      }
    }
  }
  for (const name of unseen.keys()) differences.push(`rollup ${name}: missing`);
  return differences;
}
