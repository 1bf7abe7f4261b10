import { RollupBatch, emptyTally, rollupName } from '../core/rollup.ts';
import type { RollupDelta, RollupKey, Tally } from '../core/rollup.ts';
import { uuidMs } from '../core/uuid.ts';
import { limits } from '../limits.ts';
import type { AuditedTrace, Store, TeamBooks } from './store.ts';

export interface TeamReport {
  traces: number;
  /** What does not add up, as sentences; empty where everything does. */
  differences: string[];
}

/** Recounts everything from the team's raw traces, compares it with the sequence, the counters and every sum, and decodes every payload. */
export async function verifyTeam(
  store: Store,
  teamId: string,
  onProgress: (traces: number) => void = () => {},
): Promise<TeamReport> {
  return store.audit(teamId, async (books) => {
    const recount = await recountTraces(books, onProgress);
    const differences = [...recount.differences, ...(await compareRollups(books, recount.tallies))];
    return { traces: recount.traces, differences };
  });
}

interface Recount {
  traces: number;
  tallies: Map<string, RollupKey & Tally>;
  differences: string[];
}

async function recountTraces(
  books: TeamBooks,
  onProgress: (traces: number) => void,
): Promise<Recount> {
  const differences: string[] = [];
  const tallies = new Map<string, RollupKey & Tally>();
  const damages = openDamageList();
  let expectedSeq = books.firstSeq;
  let lastUs = 0;
  let traces = 0;
  for await (const chunk of books.traces) {
    const batch = new RollupBatch();
    for (const trace of chunk) {
      if (trace.seq !== expectedSeq) {
        differences.push(`sequence: expected trace ${expectedSeq}, found ${trace.seq}`);
      }
      if (uuidMs(trace.id) !== Math.floor(trace.createdAtUs / 1000)) {
        differences.push(`trace ${trace.seq}: its id ${trace.id} is of another time`);
      }
      damages.add(trace);
      expectedSeq = trace.seq + 1;
      lastUs = trace.createdAtUs;
      batch.add(trace, trace.createdAtUs);
    }
    for (const delta of batch.deltas()) addDelta(tallies, delta);
    traces += chunk.length;
    onProgress(traces);
  }
  if (expectedSeq - 1 !== books.lastSeq) {
    differences.push(
      `counter: last sequence is ${books.lastSeq}, the last trace is ${expectedSeq - 1}`,
    );
  }
  if (traces > 0 && lastUs !== books.lastCreatedAtUs) {
    differences.push(
      `counter: last time is ${books.lastCreatedAtUs}, the last trace is of ${lastUs}`,
    );
  }
  return { traces, tallies, differences: [...differences, ...damages.sentences()] };
}

/** Damaged traces: the first ones by name, the others as a number. */
export interface DamageList {
  add(trace: Pick<AuditedTrace, 'seq' | 'id' | 'damaged'>): void;
  sentences(): readonly string[];
}

export function openDamageList(): DamageList {
  const named: string[] = [];
  let unnamed = 0;
  return {
    add({ seq, id, damaged }) {
      if (damaged.length === 0) return;
      if (named.length < limits.damagedListMax) {
        named.push(`trace ${seq} (${id}): damaged ${damaged.join(', ')}`);
      } else {
        unnamed += 1;
      }
    },
    sentences: () => (unnamed === 0 ? named : [...named, `${unnamed} more damaged traces`]),
  };
}

function addDelta(tallies: Map<string, RollupKey & Tally>, delta: RollupDelta): void {
  const name = rollupName(delta);
  const sum = tallies.get(name) ?? { ...emptyTally, ...keyOf(delta) };
  for (const column of columns) sum[column] += BigInt(delta[column]);
  tallies.set(name, sum);
}

const columns = Object.keys(emptyTally) as (keyof Tally)[];

function keyOf({ dimension, day, key }: RollupKey): RollupKey {
  return { dimension, day, key };
}

async function compareRollups(
  books: TeamBooks,
  expected: Map<string, RollupKey & Tally>,
): Promise<string[]> {
  const differences: string[] = [];
  const unseen = new Map(expected);
  for await (const chunk of books.rollups) {
    for (const stored of chunk) {
      const name = rollupName(stored);
      const recounted = unseen.get(name);
      unseen.delete(name);
      if (!recounted) differences.push(`rollup ${name}: there are no traces for it`);
      for (const column of columns) {
        const right = recounted?.[column] ?? 0n;
        if (stored[column] !== right) {
          differences.push(
            `rollup ${name}: ${column} is ${stored[column]}, the traces say ${right}`,
          );
        }
      }
    }
  }
  for (const name of unseen.keys()) differences.push(`rollup ${name}: missing`);
  return differences;
}
