import { setTimeout as delay } from 'node:timers/promises';
import { livePrices } from '../core/prices/own-prices.ts';
import type { PriceEntry } from '../core/prices/own-prices.ts';
import { OperatorError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { PriceDirectory } from '../store/price-directory.ts';
import type { RepriceRun, Repricer } from '../store/repricer.ts';
import type { Roller } from '../store/roller.ts';
import type { KeyDirectory, TeamDirectory, TeamSummary } from '../store/teams-and-keys.ts';
import type { TraceReader } from '../store/trace-reader.ts';
import type { PackedTrace, StoredRequest, Transfer } from '../store/transfer.ts';

/** The parts of a store that a copy needs. */
type Copyable = Transfer &
  Pick<TeamDirectory, 'teams'> &
  Pick<KeyDirectory, 'keys'> &
  Pick<TraceReader, 'range' | 'timeZone'> &
  Pick<Repricer, 'repriceRuns' | 'addRepriceRun'> &
  PriceDirectory &
  Pick<Roller, 'roll' | 'rebuild'>;

export interface CopyOptions {
  clock: () => number;
  /** Whether to keep copying while the source is being written to, until its servers have stopped. */
  follow: boolean;
  /** Called with the number of the source's traces that are in the target. */
  onProgress(done: number, total: number): void;
  /** Called once, when only traces that were written during the copy are missing. */
  onCaughtUp(writers: string): void;
}

export interface CopyReport {
  teams: readonly TeamSummary[];
  keys: number;
  /** Traces copied by this run, without those of an earlier, interrupted copy. */
  copied: number;
}

/** Copies everything from one store to another and keeps ids, times and sequence numbers. A second run continues where the first stopped. */
export async function copyStore(
  from: Copyable,
  to: Copyable,
  { clock, follow, onProgress, onCaughtUp }: CopyOptions,
): Promise<CopyReport> {
  /** The number of each team's traces in the target. */
  const done = new Map<string, number>();
  let copied = 0;

  /** Copies everything that the source has now. */
  async function catchUp(): Promise<readonly TeamSummary[]> {
    const teams = await from.teams(clock());
    const total = teams.reduce((sum, { traces }) => sum + traces, 0);
    let before = 0;
    // Add all teams first, so that a name conflict is found immediately and not after hours.
    for (const team of teams) {
      if (!done.has(team.id)) await to.takeTeam(team, await from.timeZone(team.id));
    }
    for (const team of teams) {
      if (done.get(team.id) !== team.traces) {
        await copyRuns(from, to, team);
        copied += await copyTeam(from, to, team, (count) => onProgress(before + count, total));
        done.set(team.id, team.traces);
      }
      before += team.traces;
    }
    onProgress(before, total);
    return teams;
  }

  const users = await to.claim();
  if (users !== null) {
    throw new OperatorError(
      `The target is in use by ${users}. Stop the servers on it, and start them again after the copy.`,
    );
  }
  let writers = await from.claim();
  if (writers !== null && !follow) throw isBeingWritten(writers);
  for (let passes = 1; writers !== null; passes++) {
    await catchUp();
    if (passes === 1) onCaughtUp(writers);
    await delay(limits.movePauseMs);
    writers = await from.claim();
  }
  // No server has written since the claim, so this pass copies everything that is left.
  const teams = await catchUp();
  for (const { id } of teams) {
    await copyTimeZone(from, to, id);
    await rollUp(to, id);
    await copyRequests(from, to, id, clock());
  }
  await copyPrices(from, to, new Set(teams.map(({ id }) => id)));
  for (const team of teams) await copyRuns(from, to, team);
  await refuseLateComers(from, teams, clock());
  // Keys are copied last, so that they do not work in the target until it is complete.
  const isCopied = new Set(teams.map(({ id }) => id));
  const keys = (await from.keys(null)).filter(({ teamId }) => isCopied.has(teamId));
  await to.takeKeys(keys);
  return { teams, keys: keys.length, copied };
}

async function copyTeam(
  from: Copyable,
  to: Copyable,
  team: TeamSummary,
  onProgress: (count: number) => void,
): Promise<number> {
  // Traces that arrive during this pass are copied in the next one, so that a busy team does not delay the others.
  const { firstSeq, lastSeq } = await from.counter(team.id);
  const start = await nextSeq(from, to, team);
  let seq = start;
  let reading = readFrom(from, team, seq);
  while (seq <= lastSeq) {
    const traces = await reading;
    if (traces.length === 0) throw isMissing(team, seq);
    seq += traces.length;
    // Read the next traces while these are written.
    if (seq <= lastSeq) reading = readFrom(from, team, seq);
    const taken = await to.takeTraces(team.id, traces);
    if (taken.kind === 'not-next') throw isForeign(team);
    onProgress(seq - firstSeq);
  }
  return seq - start;
}

/** It may have changed since the team was added. */
async function copyTimeZone(from: Copyable, to: Copyable, teamId: string): Promise<void> {
  const timeZone = await from.timeZone(teamId);
  if ((await to.timeZone(teamId)) !== timeZone) await to.rebuild(teamId, timeZone);
}

/** Otherwise the first reads of the target would have to add up every trace. */
async function rollUp(to: Copyable, teamId: string): Promise<void> {
  while ((await to.roll(teamId, limits.rollRowsMax)) > 0);
}

async function copyRequests(
  from: Copyable,
  to: Copyable,
  teamId: string,
  nowUs: number,
): Promise<void> {
  for (let after: string | undefined = ''; after !== undefined;) {
    const requests: readonly StoredRequest[] = await from.storedRequests(teamId, nowUs, after);
    await to.takeRequests(teamId, requests);
    after = requests.at(-1)?.keyHash;
  }
}

/**
 * Copies the record of changed costs before the traces. If it is another one when traces have been copied, they may have costs that have
 * changed since.
 */
async function copyRuns(from: Copyable, to: Copyable, { id, name }: TeamSummary): Promise<void> {
  const [theirs, ours] = [await from.repriceRuns(id), await to.repriceRuns(id)];
  if (progressOf(theirs) === progressOf(ours)) return;
  const { firstSeq, lastSeq } = await to.counter(id);
  if (lastSeq >= firstSeq) {
    throw new OperatorError(
      `Costs of the team "${name}" have changed in the source since they were copied. Copy into an empty store.`,
    );
  }
  const known = new Set(ours.map((run) => run.id));
  for (const run of theirs) if (!known.has(run.id)) await to.addRepriceRun(run);
}

function progressOf(runs: readonly RepriceRun[]): string {
  return runs.map(({ id, doneSeq, finishedAtUs }) => `${id} ${doneSeq} ${finishedAtUs}`).join();
}

/** The target gets the prices of the source, and no others. */
async function copyPrices(
  from: Copyable,
  to: Copyable,
  teamIds: ReadonlySet<string>,
): Promise<void> {
  const nameOf = (price: PriceEntry) => JSON.stringify([price.teamId, price.model, price.fromDay]);
  const source = new Map(
    livePrices(await from.priceEntries())
      .filter(({ teamId }) => teamId === null || teamIds.has(teamId))
      .map((price) => [nameOf(price), price]),
  );
  const target = new Map(
    livePrices(await to.priceEntries()).map((price) => [nameOf(price), price]),
  );
  for (const [name, { no: _, ...price }] of target) {
    if (!source.has(name)) await to.setPrice({ ...price, rates: null });
  }
  for (const [name, { no: _, ...price }] of source) {
    const { no: __, ...present } = target.get(name) ?? { no: 0 };
    if (JSON.stringify(present) !== JSON.stringify(price)) await to.setPrice(price);
  }
}

/** The sequence number at which to continue an earlier copy, or the first one. */
async function nextSeq(from: Copyable, to: Copyable, team: TeamSummary): Promise<number> {
  const [source, target] = [await from.counter(team.id), await to.counter(team.id)];
  if (target.lastSeq < target.firstSeq) return source.firstSeq;
  const isWithin = target.firstSeq === source.firstSeq && target.lastSeq <= source.lastSeq;
  if (!isWithin) throw isForeign(team);
  const newest = { firstSeq: target.lastSeq, count: 1 };
  const [theirs] = await from.range(team.id, newest);
  const [ours] = await to.range(team.id, newest);
  if (theirs?.id !== ours?.id) throw isForeign(team);
  return target.lastSeq + 1;
}

function readFrom(from: Copyable, team: TeamSummary, seq: number) {
  const reading = from.packedTraces(team.id, seq).then((traces): readonly PackedTrace[] => {
    const gap = traces.findIndex((trace, i) => trace.seq !== seq + i);
    if (gap === -1) return traces;
    throw isMissing(team, seq + gap);
  });
  // It is awaited later; until then a rejection must not count as unhandled.
  reading.catch(() => {});
  return reading;
}

/** Fails if the source has changed: a claim on PostgreSQL does not stop new servers, and a command can add a team at any time. */
export async function refuseLateComers(
  from: Copyable,
  copied: readonly TeamSummary[],
  nowUs: number,
): Promise<void> {
  const counts = new Map(copied.map(({ id, traces }) => [id, traces]));
  const teams = await from.teams(nowUs);
  const isOther = teams.some(({ id, traces }) => counts.get(id) !== traces);
  const writers = await from.claim();
  if (isOther || writers !== null) throw isBeingWritten(writers ?? 'another process');
}

function isMissing({ name }: TeamSummary, seq: number): OperatorError {
  return new OperatorError(
    `Trace ${seq} of the team "${name}" is missing from the source. Run tracetally verify for details.`,
  );
}

function isBeingWritten(writers: string): OperatorError {
  return new OperatorError(
    `The source is in use by ${writers}. Stop the servers on it and run the copy again, which continues where it stopped. ` +
      'Or use --follow, and stop the servers when the copy has caught up.',
  );
}

function isForeign({ name }: TeamSummary): OperatorError {
  return new OperatorError(
    `The team "${name}" has traces in the target that are not in the source. Copy into a store that nothing else writes to.`,
  );
}
