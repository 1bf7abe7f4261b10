import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { failAll, storeInHalvesAsync } from '../bisection.ts';
import type { BatchResult } from '../bisection.ts';
import { packPayloads } from '../payload.ts';
import { payloadsOf } from '../payload-blob.ts';
import type { ClockJump, TraceWrite, WriteOutcome } from '../trace-writer.ts';
import { attemptAtOnce, manyTeamsAtOnce, oneNodeAtOnce } from './batch-at-once.ts';
import { manyTeamsStatements, oneTeamStatements } from './batch-statements.ts';
import type { AtOnceStatements, BatchStatements } from './batch-statements.ts';
import { attemptBatch, wasStored } from './batch-transaction.ts';
import type { Attempt } from './batch-transaction.ts';
import type { BatchWrites, MovedCounter, PackedWrite } from './batch-writes.ts';
import type { Pools } from './connection.ts';
import { KnownCounters } from './known-counters.ts';
import type { Lane } from './lane.ts';
import {
  failureOf,
  isLockTimeout,
  isOtherCounter,
  isTypeMismatch,
  teamInDetail,
} from './postgres-failures.ts';
import { TeamNodes } from './team-nodes.ts';
import type { KnownRecordTypes } from './trace-records.ts';

/** A write of a team that another transaction has locked. It was not stored. */
export interface LockedWrite {
  kind: 'locked';
}

/** Stores writes. Never rejects: resolves with an outcome for each write. */
export interface StoreBatch {
  /** Writes of one team. Waits until the team is not locked. */
  ofTeam(teamId: string, writes: readonly TraceWrite[]): Promise<readonly WriteOutcome[]>;
  /** Writes of any teams of one node, in one transaction. Hardly waits for teams that are locked. */
  ofTeams(writes: readonly TraceWrite[]): Promise<readonly (WriteOutcome | LockedWrite)[]>;
  /** If `ofTeams` may be called again for this team before it has resolved: where, since all teams of a call must agree. */
  laneOf(teamId: string): Lane | null;
  /** The node that has the team's data, if its writes may share a transaction with others. Without a cluster all teams have the same. */
  nodeOf(teamId: string): number | null;
}

export interface BatchEvents {
  onClockJump(jump: ClockJump): void;
  /** Called after each commit. */
  onStored(counters: readonly MovedCounter[]): void;
}

/** The statements to store a batch with: at first, and after a lock was not free in time. */
interface Means {
  first: BatchStatements;
  skippingLocked?: BatchStatements;
  /** To store the batch in one round trip, if the counters are known. */
  atOnce?: AtOnceStatements;
}

/** What is known about the tables. */
export interface Tables {
  types: KnownRecordTypes;
  /** Whether they are distributed over the nodes of a cluster. */
  areDistributed: boolean;
  /** Whether there is a function that stores a batch in one round trip. */
  haveStoreFunction: boolean;
}

export function openStoreBatch(
  pools: Pools,
  clock: Clock,
  { types, areDistributed, haveStoreFunction }: Tables,
  { onClockJump, onStored }: BatchEvents,
): StoreBatch {
  /** Writes of teams that were left out because they are locked. */
  const locked = new WeakSet<PackedWrite>();

  const known = new KnownCounters(areDistributed ? clusterFirstMisses : 0);

  function stored(batch: BatchWrites): BatchResult {
    for (const write of batch.locked) locked.add(write);
    onStored(batch.counters());
    for (const jump of batch.jumps) onClockJump(jump);
    return { kind: 'stored', outcomes: batch.outcomes };
  }

  async function attemptAt(
    writes: readonly PackedWrite[],
    statements: BatchStatements,
  ): Promise<Attempt> {
    known.suspend(writes);
    const attempt = await attemptBatch(pools, clock, writes, statements);
    if (attempt.kind === 'stored') known.committed(attempt.batch.counters());
    return attempt;
  }

  /** Null if the batch must be stored in two round trips. */
  async function tryAtOnce(
    writes: readonly PackedWrite[],
    via: AtOnceStatements,
  ): Promise<Attempt | null> {
    const attempt = await attemptAtOnce({ writing: pools.writing, known, via }, clock, writes);
    return attempt?.kind === 'not as expected' ? null : attempt;
  }

  /** Retries as long as that may help. */
  async function store(writes: readonly PackedWrite[], means: Means): Promise<BatchResult> {
    const startMs = performance.now();
    let statements = means.first;
    let via = means.atOnce;
    for (let attempts = 1; ; attempts++) {
      const atOnce = via ? await tryAtOnce(writes, via) : null;
      const attempt = atOnce ?? (await attemptAt(writes, statements));
      via = undefined;
      if (attempt.kind === 'stored') return stored(attempt.batch);
      known.forget(writes);
      const { error } = attempt;
      const reason = messageOf(error);
      if (attempt.kind === 'doubtful') {
        const isStored = await wasStored(pools, attempt.batch);
        if (isStored) return stored(attempt.batch);
        if (isStored === null) return unknownOutcome(error);
      }
      const isLock = isLockTimeout(error);
      if (means.skippingLocked && statements === means.first && isLock) {
        statements = means.skippingLocked;
        continue;
      }
      if (isTypeMismatch(error)) await types.readAgain().catch(() => {});
      // An attempt in two round trips shows whether the error is one of the data.
      if (atOnce?.kind === 'failed' && !isLock) continue;
      const { code, isOfStore, isWorthRetry } = failureOf(error);
      const isInTime = performance.now() - startMs < limits.postgresRetryMsMax;
      const mayRetry = isWorthRetry || attempt.kind === 'doubtful';
      if (!mayRetry || !isInTime || attempts >= limits.postgresAttemptsMax) {
        return { kind: 'failed', code, reason, isOfStore };
      }
      await delay(limits.postgresPauseMsMax * Math.random());
    }
  }

  async function storeAll(
    writes: readonly TraceWrite[],
    means: Means,
  ): Promise<readonly (WriteOutcome | LockedWrite)[]> {
    try {
      // Before the transaction, so that no lock is held during compression.
      const packed = writes.map(pack);
      const outcomes = await storeInHalvesAsync(packed, (batch) => store(batch, means));
      return outcomes.map((outcome, i) => {
        const write = packed[i];
        return write && locked.has(write) ? isLocked : outcome;
      });
    } catch (error) {
      return failAll(writes, { code: 'internal', reason: messageOf(error) });
    }
  }

  const ofManyTeams: Means = {
    first: manyTeamsStatements(pools.begin, types, false),
    skippingLocked: manyTeamsStatements(pools.begin, types, true),
    ...(haveStoreFunction && { atOnce: manyTeamsAtOnce(pools, types) }),
  };
  const nodes = new TeamNodes(pools);
  const ofOneNode = oneNodeAtOnce(pools, types);

  /**
   * A team that is locked or not as expected is left out, and the others are tried again. If anything else goes wrong, this is null, and
   * each team gets a transaction of its own, which finds out more.
   */
  async function storeOnNode(
    writes: readonly PackedWrite[],
    leftOut: Set<string>,
  ): Promise<BatchResult | null> {
    const isIn = ({ write }: PackedWrite): boolean => !leftOut.has(write.teamId);
    const attempt = await attemptAtOnce(
      { writing: pools.writing, known, via: ofOneNode },
      clock,
      writes.filter(isIn),
    );
    if (attempt?.kind === 'stored') {
      known.confirmed(attempt.batch.counters());
      return stored(attempt.batch);
    }
    if (attempt?.kind === 'not as expected') {
      const teamId = teamInDetail(attempt.error);
      if (teamId !== null && leftOut.size < limits.postgresLeftOutMax) {
        known.refuted(attempt.batch.counters(), teamId, isOtherCounter(attempt.error));
        leftOut.add(teamId);
        return writes.some(isIn) ? storeOnNode(writes, leftOut) : null;
      }
    }
    known.forget(writes);
    for (const { write } of writes) nodes.forget(write.teamId);
    if (!attempt || attempt.kind === 'not as expected') return null;
    const { error } = attempt;
    if (attempt.kind === 'doubtful') {
      const isStored = await wasStored(pools, attempt.batch);
      if (isStored) return stored(attempt.batch);
      return isStored === null ? unknownOutcome(error) : null;
    }
    if (isTypeMismatch(error)) await types.readAgain().catch(() => {});
    const { code, isOfStore, isWorthRetry } = failureOf(error);
    if (!isOfStore || isWorthRetry || isLockTimeout(error)) return null;
    return { kind: 'failed', code, reason: messageOf(error), isOfStore };
  }

  async function storeAllOnNode(
    writes: readonly TraceWrite[],
  ): Promise<readonly (WriteOutcome | LockedWrite)[]> {
    const leftOut = new Set<string>();
    let result: BatchResult | null;
    try {
      result = await storeOnNode(writes.map(pack), leftOut);
    } catch (error) {
      return failAll(writes, { code: 'internal', reason: messageOf(error) });
    }
    if (!result) return writes.map(() => isLocked);
    const taken = writes.filter(({ teamId }) => !leftOut.has(teamId));
    const outcomes = result.kind === 'stored' ? result.outcomes : failAll(taken, result);
    let at = 0;
    return writes.map(({ teamId }) =>
      leftOut.has(teamId) ? isLocked : (outcomes[at++] ?? isLocked),
    );
  }

  async function storeOfTeam(
    teamId: string,
    writes: readonly TraceWrite[],
  ): Promise<readonly WriteOutcome[]> {
    const outcomes = await storeAll(writes, { first: oneTeamStatements(pools.begin, teamId) });
    if (areDistributed && haveStoreFunction) void nodes.learn(teamId);
    // Without statements that skip locked teams no write is left out.
    return outcomes as readonly WriteOutcome[];
  }

  if (areDistributed) {
    return {
      ofTeam: storeOfTeam,
      ofTeams: storeAllOnNode,
      laneOf: () => null,
      nodeOf: (teamId) => (known.isKnown(teamId) ? nodes.nodeOf(teamId) : null),
    };
  }
  return {
    ofTeam: storeOfTeam,
    ofTeams: (writes) => storeAll(writes, ofManyTeams),
    laneOf: (teamId) => known.laneOf(teamId),
    nodeOf: () => 0,
  };
}

function pack(write: TraceWrite): PackedWrite {
  return { write, payloads: payloadsOf(write) ?? write.drafts.map(packPayloads) };
}

function unknownOutcome(error: unknown): BatchResult {
  const reason = `${messageOf(error)}; it is not known whether the commit succeeded`;
  return { kind: 'failed', code: 'outcome_unknown', reason, isOfStore: true };
}

/** On a cluster, a transaction that finds another counter than expected has been sent in vain for all its teams. */
const clusterFirstMisses = 3;
const isLocked: LockedWrite = { kind: 'locked' };
