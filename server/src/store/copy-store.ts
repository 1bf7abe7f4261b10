import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { PackedTrace } from './mover.ts';
import type { Store, TeamSummary } from './store.ts';

export interface CopyOptions {
  clock: () => number;
  /** Copies a source that is being written, until its servers have stopped. */
  follow: boolean;
  /** Called with how many of the source's traces the target has. */
  onProgress(done: number, total: number): void;
  /** Called once, when only what is written meanwhile is missing. */
  onCaughtUp(writers: string): void;
}

export interface CopyReport {
  teams: readonly TeamSummary[];
  keys: number;
  /** Traces that were copied now; those of an earlier, interrupted copy are not among them. */
  copied: number;
}

/** Copies everything from one store to another, with ids, times and sequence kept. Run again, it goes on where it ended. */
export async function copyStore(
  from: Store,
  to: Store,
  { clock, follow, onProgress, onCaughtUp }: CopyOptions,
): Promise<CopyReport> {
  /** How many traces of each team are in the target. */
  const done = new Map<string, number>();
  let copied = 0;

  /** Brings the target to where the source is now. */
  async function catchUp(): Promise<readonly TeamSummary[]> {
    const teams = await from.teams(clock());
    const total = teams.reduce((sum, { traces }) => sum + traces, 0);
    let before = 0;
    for (const team of teams) {
      if (done.get(team.id) !== team.traces) {
        copied += await copyTeam(from, to, team, (count) => onProgress(before + count, total));
        done.set(team.id, team.traces);
      }
      before += team.traces;
    }
    onProgress(before, total);
    return teams;
  }

  let writers = await from.claim();
  if (writers !== null && !follow) throw isBeingWritten(writers);
  for (let passes = 1; writers !== null; passes++) {
    await catchUp();
    if (passes === 1) onCaughtUp(writers);
    await delay(limits.movePauseMs);
    writers = await from.claim();
  }
  // Nobody has written since the claim, so now it is all.
  const teams = await catchUp();
  for (const { id } of teams) await to.takeRequests(id, await from.knownRequests(id, clock()));
  // The keys come last: until everything is there, nobody can write to a team's copy.
  const keys = await from.keysWithHashes();
  await to.takeKeys(keys);
  await refuseLateTraces(from, teams);
  return { teams, keys: keys.length, copied };
}

async function copyTeam(
  from: Store,
  to: Store,
  team: TeamSummary,
  onProgress: (count: number) => void,
): Promise<number> {
  await to.takeTeam(team);
  const { firstSeq } = await from.place(team.id);
  const start = await nextSeq(from, to, team);
  let seq = start;
  let reading = readFrom(from, team, seq);
  for (;;) {
    const traces = await reading;
    if (traces.length === 0) return seq - start;
    seq += traces.length;
    // The next ones are read while these are written.
    reading = readFrom(from, team, seq);
    const taken = await to.takeTraces(team.id, traces);
    if (taken.kind === 'elsewhere') throw isForeign(team);
    onProgress(seq - firstSeq);
  }
}

/** Where an earlier copy ended, or the beginning. */
async function nextSeq(from: Store, to: Store, team: TeamSummary): Promise<number> {
  const [source, target] = [await from.place(team.id), await to.place(team.id)];
  if (target.lastSeq < target.firstSeq) return source.firstSeq;
  const isWithin = target.firstSeq === source.firstSeq && target.lastSeq <= source.lastSeq;
  if (!isWithin) throw isForeign(team);
  const newest = { firstSeq: target.lastSeq, count: 1 };
  const [theirs] = await from.range(team.id, newest);
  const [ours] = await to.range(team.id, newest);
  if (theirs?.id !== ours?.id) throw isForeign(team);
  return target.lastSeq + 1;
}

function readFrom(from: Store, { id, name }: TeamSummary, seq: number) {
  const reading = from.packedTraces(id, seq).then((traces): readonly PackedTrace[] => {
    const gap = traces.findIndex((trace, i) => trace.seq !== seq + i);
    if (gap === -1) return traces;
    throw new OperatorError(
      `The source misses trace ${seq + gap} of the team "${name}". tracetally verify tells more.`,
    );
  });
  // It is waited for later; until then a failure of it is nobody's.
  reading.catch(() => {});
  return reading;
}

/** The claim on a database that others can reach keeps nobody away. */
async function refuseLateTraces(from: Store, teams: readonly TeamSummary[]): Promise<void> {
  for (const { id, traces } of teams) {
    const { firstSeq, lastSeq } = await from.place(id);
    if (lastSeq - firstSeq + 1 !== traces) throw isBeingWritten('somebody');
  }
}

function isBeingWritten(writers: string): OperatorError {
  return new OperatorError(
    `The source is being written, by ${writers}. Stop the writers and copy again: it goes on where it ended. ` +
      'Or use --follow, and stop them when it has caught up.',
  );
}

function isForeign({ name }: TeamSummary): OperatorError {
  return new OperatorError(
    `The team "${name}" has traces in the target that are not the source's. Copy into a store where nobody else writes.`,
  );
}
