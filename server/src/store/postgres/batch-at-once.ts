import type pg from 'pg';
import type { Clock } from '../../core/clock.ts';
import { limits } from '../../limits.ts';
import { arrayOfPlain } from './array-literal.ts';
import { counterValues, forgetRequests, requestValues, sweepOfTeam } from './batch-statements.ts';
import type { AtOnceStatements } from './batch-statements.ts';
import type { Attempt } from './batch-transaction.ts';
import { BatchWrites } from './batch-writes.ts';
import type { MovedCounter, PackedWrite } from './batch-writes.ts';
import { beginOnly, settingsOf } from './connection.ts';
import type { Pools, Values } from './connection.ts';
import { ofManyTeams } from './many-teams-statements.ts';
import type { KnownCounters } from './known-counters.ts';
import { Lane } from './lane.ts';
import type { Answers, Statement } from './pipeline.ts';
import {
  ConnectionLost,
  isEndedByServer,
  isInternal,
  isNotAsExpected,
} from './postgres-failures.ts';
import { callStoreFunction } from './store-function.ts';
import { requestRecords, TraceRecords } from './trace-records.ts';
import type { KnownRecordTypes, RecordTypes } from './trace-records.ts';

/** A counter was not as expected, or a request was stored before. Nothing is stored. */
export interface NotAsExpected {
  kind: 'not as expected';
  batch: BatchWrites;
  /** Null if the statements have returned that nothing is stored. */
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
  const statements = via.all(batch, wallUs);
  const lane = expected.lane ?? new Lane(writing);
  known.sent(batch.counters(), lane);
  try {
    return attemptOf(batch, statements.length, await lane.run(statements), via);
  } catch (error) {
    return { kind: 'failed', error };
  }
}

function attemptOf(
  batch: BatchWrites,
  statementCount: number,
  { answers, error }: Answers,
  via: AtOnceStatements,
): Attempt | NotAsExpected {
  if (error) {
    if (isNotAsExpected(error)) return { kind: 'not as expected', batch, error };
    const isDoubtful = via.isDoubtful(error, answers.length >= statementCount - 1);
    return isDoubtful ? { kind: 'doubtful', batch, error } : { kind: 'failed', error };
  }
  return via.isStored(answers)
    ? { kind: 'stored', batch }
    : { kind: 'not as expected', batch, error: null };
}

/** The whole transaction of any teams whose counters are known. */
export function manyTeamsAtOnce(
  { synchronousCommit }: Pick<Pools, 'synchronousCommit'>,
  types: KnownRecordTypes,
): AtOnceStatements {
  return {
    rows: () => new TraceRecords(types.current),
    all: (batch, wallUs) => statementsOf(batch, wallUs, synchronousCommit),
    isStored: (answers) => answers.at(-1)?.command === 'COMMIT' && answers.at(-2)?.row?.[0] === 't',
    isDoubtful: (error, isOfCommit) =>
      isOfCommit || (error instanceof ConnectionLost && !isEndedByServer(error)),
  };
}

/** The same on a cluster, for teams of one node: a call of a function, which commits by itself. */
export function oneNodeAtOnce(
  { synchronousCommit }: Pick<Pools, 'synchronousCommit'>,
  types: KnownRecordTypes,
): AtOnceStatements {
  return {
    rows: () => new TraceRecords(types.current),
    all: (batch, wallUs) => [callOf(batch, wallUs, types.current, synchronousCommit)],
    isStored: ([answer]) => answer?.command === 'SELECT 1',
    // The error of a node comes before its commit. If the coordinator has lost the node, the error is its own.
    isDoubtful: (error) => error instanceof ConnectionLost || isInternal(error),
  };
}

function callOf(
  batch: BatchWrites,
  wallUs: number,
  types: RecordTypes,
  synchronousCommit: string,
): Statement {
  const { rows, requests } = batch;
  // In a fixed order, so that two transactions never wait for each other.
  const counters = batch.counters().sort((a, b) => (a.teamId < b.teamId ? -1 : 1));
  return [
    callStoreFunction,
    [
      counters[0]?.teamId ?? null,
      ...rows.traceValues(),
      ...rows.payloadValues(),
      requestRecords(types, requests, wallUs),
      String(wallUs),
      String(sweepOfTeam(requests)),
      ...counterValues(counters),
      ...expectedValues(counters),
      synchronousCommit,
      String(limits.postgresSharedLockMsMax),
    ],
  ];
}

function statementsOf(batch: BatchWrites, wallUs: number, synchronousCommit: string): Statement[] {
  const { rows, requests } = batch;
  const counters = batch.counters();
  const hasRequests = requests.length > 0;
  return [
    [beginOnly, []],
    settings(synchronousCommit),
    ...(hasRequests ? [forgetRequests(requests, wallUs)] : []),
    [
      hasRequests ? ofManyTeams.storeWithRequestsIfAsExpected : ofManyTeams.storeIfAsExpected,
      [
        ...rows.traceValues(),
        ...rows.payloadValues(),
        ...counterValues(counters),
        ...expectedValues(counters),
        ...(hasRequests ? [String(wallUs), ...requestValues(requests, wallUs)] : []),
      ],
    ],
    ['commit', []],
  ];
}

function expectedValues(counters: readonly MovedCounter[]): Values {
  return [
    arrayOfPlain(counters.map(({ fromSeq }) => fromSeq)),
    arrayOfPlain(counters.map(({ fromUs }) => fromUs)),
    arrayOfPlain(counters.map(({ fence }) => fence)),
  ];
}

/** If a lock is not free, another attempt finds out which. */
function settings(synchronousCommit: string): Statement {
  const all = {
    ...settingsOf(synchronousCommit),
    lock_timeout: String(limits.postgresSharedLockMsMax),
  };
  const calls = Object.keys(all).map((name, i) => `set_config('${name}', $${i + 1}, true)`);
  return [`select ${calls.join(' || ')} as settings`, Object.values(all)];
}
