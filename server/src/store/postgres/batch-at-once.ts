import type pg from 'pg';
import type { Clock } from '../../core/clock.ts';
import { limits } from '../../limits.ts';
import { arrayOfPlain } from './array-literal.ts';
import { counterValues, forgetRequests, requestValues } from './batch-statements.ts';
import type { AtOnceStatements } from './batch-statements.ts';
import type { Attempt } from './batch-transaction.ts';
import { BatchWrites } from './batch-writes.ts';
import type { PackedWrite } from './batch-writes.ts';
import { beginOnly, settingsOf } from './connection.ts';
import type { Pools } from './connection.ts';
import { ofManyTeams } from './many-teams-statements.ts';
import type { KnownCounters } from './known-counters.ts';
import { Lane } from './lane.ts';
import type { Answers, Statement } from './pipeline.ts';
import { ConnectionLost, isEndedByServer, isNotAsExpected } from './postgres-failures.ts';
import { TraceRecords } from './trace-records.ts';
import type { KnownRecordTypes } from './trace-records.ts';

/** A counter was not as expected, or a request was stored before. Nothing is stored. */
export interface NotAsExpected {
  kind: 'not as expected';
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
    if (isNotAsExpected(error)) return { kind: 'not as expected' };
    const isOfCommit = answers.length >= statementCount - 1;
    const isLost = error instanceof ConnectionLost && !isEndedByServer(error);
    return isOfCommit || isLost ? { kind: 'doubtful', batch, error } : { kind: 'failed', error };
  }
  const isStored = answers.at(-1)?.command === 'COMMIT' && via.isStored(answers);
  return isStored ? { kind: 'stored', batch } : { kind: 'not as expected' };
}

/** The whole transaction of any teams whose counters are known. */
export function manyTeamsAtOnce(
  { synchronousCommit }: Pick<Pools, 'synchronousCommit'>,
  types: KnownRecordTypes,
): AtOnceStatements {
  return {
    rows: () => new TraceRecords(types.current),
    all: (batch, wallUs) => statementsOf(batch, wallUs, synchronousCommit),
    isStored: (answers) => answers.at(-2)?.row?.[0] === 't',
  };
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
        arrayOfPlain(counters.map(({ fromSeq }) => fromSeq)),
        arrayOfPlain(counters.map(({ fromUs }) => fromUs)),
        arrayOfPlain(counters.map(({ fence }) => fence)),
        ...(hasRequests ? [String(wallUs), ...requestValues(requests, wallUs)] : []),
      ],
    ],
    ['commit', []],
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
