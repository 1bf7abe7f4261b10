import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { openClock } from '../../core/clock.ts';
import type { ClockSource } from '../../core/clock.ts';
import { Failure, messageOf } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { failAll, storeInHalvesAsync } from '../bisection.ts';
import type { BatchResult } from '../bisection.ts';
import { packPayloads } from '../payload.ts';
import { payloadsOf } from '../payload-blob.ts';
import type { ClockJump, TraceWrite } from '../trace-writer.ts';
import { BatchWrites, jumpsOf } from './batch-writes.ts';
import type { CallOutcome, KnownCalls, PackedWrite, StoreAnswer } from './batch-writes.ts';
import { CallConnection } from './call-connection.ts';
import { TokenSweeper } from './call-tokens.ts';
import { abandon, connect } from './connection.ts';
import type { Pools } from './connection.ts';
import {
  failureOf,
  isFunctionMissing,
  isLockTimeout,
  isOnOtherNode,
  isTypeMismatch,
} from './postgres-failures.ts';
import type { WrittenTeam } from './roller-messages.ts';
import { callStore } from './store-call.ts';
import type { LockRule } from './store-call.ts';
import { ensureStoreFunction } from './store-function.ts';
import { TeamNodes } from './team-nodes.ts';
import type { KnownRecordTypes } from './trace-records.ts';

/** The outcome of a write, or that another transaction has locked its team; then nothing of it is stored. */
export type BatchOutcome = Exclude<CallOutcome, { kind: 'send again' }>;

/** Stores writes. Never rejects: resolves with an outcome for each write. */
export interface StoreBatch {
  openConnection(): CallConnection;
  /** Writes of any teams, in one call for each node. Hardly waits for teams that are locked. */
  ofTeams(writes: readonly TraceWrite[], connection: CallConnection): Promise<BatchOutcome[]>;
  /** Writes of one team. Waits until the team is not locked. */
  ofTeam(writes: readonly TraceWrite[]): Promise<BatchOutcome[]>;
  /** The node that has the team's data; null if it is not known. Without a cluster all teams have the same. */
  nodeOf(teamId: string): number | null;
}

export interface BatchEvents {
  onClockJump(jump: ClockJump): void;
  /** Called after each commit. */
  onStored(teams: readonly WrittenTeam[]): void;
}

/** What is known about the tables. */
export interface Tables {
  types: KnownRecordTypes;
  /** Whether they are distributed over the nodes of a cluster. */
  areDistributed: boolean;
}

interface BatchOptions {
  connection: CallConnection;
  lockRule: LockRule;
}

export function openStoreBatch(
  pools: Pools,
  clockSource: ClockSource,
  { types, areDistributed }: Tables,
  { onClockJump, onStored }: BatchEvents,
): StoreBatch {
  const clock = openClock(clockSource);
  const nodes = areDistributed ? new TeamNodes(pools) : null;
  const sweeper = new TokenSweeper(pools);
  // The clock of the database is read while the counter is locked, and all servers share it.
  const nowUs = (): number | null => (clockSource.kind === 'system' ? null : clock());

  function report(batch: BatchWrites, answer: StoreAnswer): void {
    onStored(batch.written(answer));
    for (const jump of jumpsOf(answer)) onClockJump(jump);
    void sweeper.sweep(nowUs());
  }

  /** Removes the cause of an error, if a server can do that. */
  async function repair(error: unknown): Promise<void> {
    if (isTypeMismatch(error)) await types.readAgain();
    if (isFunctionMissing(error)) {
      await withClient(pools.writing, (client) => ensureStoreFunction(client, areDistributed));
    }
  }

  /** Stores a batch in one call. Retries as long as that may help. */
  async function storeAtOnce(
    writes: readonly PackedWrite[],
    known: KnownCalls,
    { connection, lockRule: firstRule }: BatchOptions,
  ): Promise<BatchResult<CallOutcome>> {
    const startMs = performance.now();
    let lockRule = firstRule;
    for (let attempts = 1; ; attempts++) {
      const batch = new BatchWrites(writes, known, types.current);
      const options = { pools, connection, isCluster: areDistributed, nowUs: nowUs(), lockRule };
      const end = await callStore(batch, options);
      if (end.kind === 'answered') {
        report(batch, end.answer);
        learnCalls(known, end.answer);
        return { kind: 'stored', outcomes: batch.outcomes(end.answer) };
      }
      const { error } = end;
      if (end.kind === 'unknown') return unknownOutcome(error);
      if (isLockTimeout(error) && lockRule === 'wait briefly') {
        lockRule = 'skip';
        continue;
      }
      // Another lock than that of a counter, for example while a shard is moved.
      if (isLockTimeout(error) && lockRule === 'skip') return allOf(writes, { kind: 'locked' });
      if (isOnOtherNode(error)) {
        nodes?.forget(batch.teamIds);
        await delay(limits.postgresPauseMsMax * Math.random());
        return allOf(writes, { kind: 'send again' });
      }
      await repair(error).catch(() => {});
      const { code, isOfStore, isWorthRetry } = failureOf(error);
      const isInTime = performance.now() - startMs < limits.postgresRetryMsMax;
      const mayRetry = isWorthRetry || end.wasInDoubt;
      if (!mayRetry || !isInTime || attempts >= limits.postgresAttemptsMax) {
        return { kind: 'failed', code, reason: messageOf(error), isOfStore };
      }
      await delay(limits.postgresPauseMsMax * Math.random());
    }
  }

  /** Teams of different nodes cannot share a call. */
  async function byNode(writes: readonly PackedWrite[]): Promise<PackedWrite[][]> {
    if (!nodes) return [[...writes]];
    await nodes.learn(new Set(writes.map(({ write }) => write.teamId)));
    return [...Map.groupBy(writes, ({ write }) => nodes.nodeOf(write.teamId)).values()];
  }

  /** Stores writes in as few calls as possible. */
  async function storeAll(
    writes: readonly PackedWrite[],
    options: BatchOptions,
  ): Promise<BatchOutcome[]> {
    const outcomes = new Map<PackedWrite, BatchOutcome>();
    const known: KnownCalls = new Map();
    const untilMs = performance.now() + limits.postgresRetryMsMax;
    let left = writes;
    while (left.length > 0 && performance.now() < untilMs) {
      const again: PackedWrite[] = [];
      for (const some of await byNode(left)) {
        const results = await storeInHalvesAsync<PackedWrite, CallOutcome>(some, (batch) =>
          storeAtOnce(batch, known, options),
        );
        for (const [i, write] of some.entries()) {
          const outcome = results[i] ?? noOutcome;
          if (outcome.kind === 'send again') again.push(write);
          else outcomes.set(write, outcome);
        }
      }
      left = again;
    }
    return writes.map((write) => outcomes.get(write) ?? tooManyChanges);
  }

  async function storeOf(
    writes: readonly TraceWrite[],
    options: BatchOptions,
  ): Promise<BatchOutcome[]> {
    try {
      // Before the transaction, so that no lock is held during compression.
      return await storeAll(writes.map(pack), options);
    } catch (error) {
      const code = error instanceof Failure ? error.code : failureOf(error).code;
      return failAll(writes, { code, reason: messageOf(error) });
    }
  }

  const openConnection = (): CallConnection => new CallConnection(pools.writing);
  return {
    openConnection,
    ofTeams: (writes, connection) => storeOf(writes, { connection, lockRule: 'wait briefly' }),
    ofTeam: (writes) => storeOf(writes, { connection: openConnection(), lockRule: 'wait' }),
    nodeOf: (teamId) => (nodes ? nodes.nodeOf(teamId) : 0),
  };
}

function allOf(writes: readonly PackedWrite[], outcome: CallOutcome): BatchResult<CallOutcome> {
  return { kind: 'stored', outcomes: writes.map(() => outcome) };
}

function learnCalls(known: KnownCalls, { otherCalls }: StoreAnswer): void {
  for (const [teamId, states] of Object.entries(otherCalls ?? {})) {
    known.set(teamId, new Map(Object.entries(states)));
  }
}

function pack(write: TraceWrite): PackedWrite {
  return { write, payloads: payloadsOf(write) ?? write.drafts.map(packPayloads) };
}

function unknownOutcome(error: unknown): BatchResult<CallOutcome> {
  const reason = `${messageOf(error)}; it is not known whether the commit succeeded`;
  return { kind: 'failed', code: 'outcome_unknown', reason, isOfStore: true };
}

async function withClient(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<void>,
): Promise<void> {
  const client = await connect(pool);
  try {
    await work(client);
    client.release();
  } catch (error) {
    await abandon(client, error);
    throw error;
  }
}

const tooManyChanges: BatchOutcome = {
  kind: 'failed',
  code: 'store_unavailable',
  reason: 'other servers kept storing reports of the same calls, or teams kept moving',
};
const noOutcome: BatchOutcome = { kind: 'failed', code: 'internal', reason: 'no outcome' };
