import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { failAll, storeInHalvesAsync } from '../bisection.ts';
import type { BatchResult } from '../bisection.ts';
import { packPayloads } from '../payload.ts';
import type { ClockJump, TraceWrite, WriteOutcome } from '../trace-writer.ts';
import type { Pools } from './connection.ts';
import { failureOf } from './postgres-failures.ts';
import { attemptBatch, wasStored } from './team-transaction.ts';
import type { PackedWrite, TeamWrites } from './team-writes.ts';

/** Stores writes of one team. Never rejects: resolves with an outcome for each write. */
export type StoreBatch = (
  teamId: string,
  writes: readonly TraceWrite[],
) => Promise<readonly WriteOutcome[]>;

export function openStoreBatch(
  pools: Pools,
  clock: Clock,
  onClockJump: (jump: ClockJump) => void,
): StoreBatch {
  function stored(batch: TeamWrites): BatchResult {
    if (batch.jump) onClockJump(batch.jump);
    return { kind: 'stored', outcomes: batch.outcomes };
  }

  /** Retries as long as that may help. */
  async function store(teamId: string, writes: readonly PackedWrite[]): Promise<BatchResult> {
    const startMs = performance.now();
    for (let attempts = 1; ; attempts++) {
      const attempt = await attemptBatch(pools, clock, teamId, writes);
      if (attempt.kind === 'stored') return stored(attempt.batch);
      const reason = messageOf(attempt.error);
      if (attempt.kind === 'doubtful') {
        const isStored = await wasStored(pools, teamId, attempt.batch);
        if (isStored) return stored(attempt.batch);
        if (isStored === null) {
          const unknown = `${reason}; it is not known whether the commit succeeded`;
          return { kind: 'failed', code: 'outcome_unknown', reason: unknown, isOfStore: true };
        }
      }
      const { code, isOfStore, isWorthRetry } = failureOf(attempt.error);
      const isInTime = performance.now() - startMs < limits.postgresRetryMsMax;
      const mayRetry = isWorthRetry || attempt.kind === 'doubtful';
      if (!mayRetry || !isInTime || attempts >= limits.postgresAttemptsMax) {
        return { kind: 'failed', code, reason, isOfStore };
      }
      await delay(limits.postgresPauseMsMax * Math.random());
    }
  }

  return async (teamId, writes) => {
    try {
      // Before the transaction, so that no lock is held during compression.
      const packed = writes.map((write) => ({ write, payloads: write.drafts.map(packPayloads) }));
      return await storeInHalvesAsync(packed, (batch) => store(teamId, batch));
    } catch (error) {
      return failAll(writes, { code: 'internal', reason: messageOf(error) });
    }
  };
}
