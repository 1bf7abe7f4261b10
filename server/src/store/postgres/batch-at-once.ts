import type pg from 'pg';
import type { Clock } from '../../core/clock.ts';
import { limits } from '../../limits.ts';
import { arrayOfPlain } from './array-literal.ts';
import { counterValues, sweepOfTeam } from './batch-statements.ts';
import type { AtOnceStatements } from './batch-statements.ts';
import type { Attempt } from './batch-transaction.ts';
import { BatchWrites } from './batch-writes.ts';
import type { PackedWrite } from './batch-writes.ts';
import type { Pools, Values } from './connection.ts';
import type { KnownCounters } from './known-counters.ts';
import { Lane } from './lane.ts';
import {
  ConnectionLost,
  isEndedByServer,
  isInternal,
  isNotAsExpected,
} from './postgres-failures.ts';
import { clusterFunction, plainFunction } from './store-function.ts';
import { requestRecords, TraceRecords } from './trace-records.ts';
import type { KnownRecordTypes, RecordTypes } from './trace-records.ts';
import type { Ending } from './wire-call.ts';

/** A counter was not as expected, or a request was stored before. Nothing is stored. */
export interface NotAsExpected {
  kind: 'not as expected';
  batch: BatchWrites;
  /** Null if the function has returned that nothing is stored. */
  error: Error | null;
}

/** What a batch that is sent at once needs. */
export interface AtOnce {
  writing: pg.Pool;
  known: KnownCounters;
  via: AtOnceStatements;
}

/**
 * Stores a batch in one round trip: sequence numbers and times are computed from the counters that are expected, and nothing is stored if
 * the database has others. The lock is held only while the database works. Null if the counters are not known.
 */
export async function attemptAtOnce(
  { writing, known, via }: AtOnce,
  clock: Clock,
  writes: readonly PackedWrite[],
): Promise<Attempt | NotAsExpected | null> {
  const expected = known.expectedFor(writes);
  if (!expected) return null;
  const wallUs = clock();
  const batch = new BatchWrites(expected.teams, wallUs, via.rows());
  for (const write of writes) batch.add(write);
  const call = via.call(batch, wallUs);
  const lane = expected.lane ?? new Lane(writing);
  known.sent(batch.counters(), lane);
  try {
    return attemptOf(batch, await lane.run(call), via);
  } catch (error) {
    return { kind: 'failed', error };
  }
}

function attemptOf(
  batch: BatchWrites,
  { answer, error }: Ending,
  via: AtOnceStatements,
): Attempt | NotAsExpected {
  if (error) {
    if (isNotAsExpected(error)) return { kind: 'not as expected', batch, error };
    const isDoubtful = via.isDoubtful(error, answer !== null);
    return isDoubtful ? { kind: 'doubtful', batch, error } : { kind: 'failed', error };
  }
  return answer && via.isStored(answer)
    ? { kind: 'stored', batch }
    : { kind: 'not as expected', batch, error: null };
}

/** Any teams whose counters are known. */
export function manyTeamsAtOnce(pools: Pools, types: KnownRecordTypes): AtOnceStatements {
  return {
    rows: () => new TraceRecords(types.current),
    call: (batch, wallUs) => [plainFunction.call, valuesOf(batch, wallUs, types.current, pools)],
    isStored: ([isStored]) => isStored === 't',
    // If the server has ended the connection and has not answered, it has not executed the call.
    isDoubtful: (error, isAnswered) =>
      isAnswered || (mayHideCommit(error) && !isEndedByServer(error)),
  };
}

/** The same on a cluster, for teams of one node. */
export function oneNodeAtOnce(pools: Pools, types: KnownRecordTypes): AtOnceStatements {
  return {
    rows: () => new TraceRecords(types.current),
    call(batch, wallUs) {
      const firstTeam = batch.rows.first?.teamId ?? null;
      return [clusterFunction.call, [firstTeam, ...valuesOf(batch, wallUs, types.current, pools)]];
    },
    isStored: () => true,
    isDoubtful: (error, isAnswered) => isAnswered || mayHideCommit(error),
  };
}

/** Other errors come from the call itself. The commit comes after its answer; on a cluster the coordinator may have lost the node. */
function mayHideCommit(error: Error): boolean {
  return error instanceof ConnectionLost || isInternal(error);
}

function valuesOf(
  batch: BatchWrites,
  wallUs: number,
  types: RecordTypes,
  { synchronousCommit }: Pick<Pools, 'synchronousCommit'>,
): Values {
  const { rows, requests } = batch;
  // In a fixed order, so that two transactions never wait for each other.
  const counters = batch.counters().sort((a, b) => (a.teamId < b.teamId ? -1 : 1));
  return [
    ...rows.traceValues(),
    ...rows.payloadValues(),
    requestRecords(types, requests, wallUs),
    String(wallUs),
    String(sweepOfTeam(requests)),
    ...counterValues(counters),
    arrayOfPlain(counters.map(({ fromSeq }) => fromSeq)),
    arrayOfPlain(counters.map(({ fromUs }) => fromUs)),
    arrayOfPlain(counters.map(({ fence }) => fence)),
    synchronousCommit,
    // If a lock is not free, another attempt finds out which.
    String(limits.postgresSharedLockMsMax),
  ];
}
