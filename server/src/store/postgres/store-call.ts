import { randomUUID } from 'node:crypto';
import { limits } from '../../limits.ts';
import type { BatchWrites, StoreAnswer } from './batch-writes.ts';
import type { CallConnection } from './call-connection.ts';
import { fateOf } from './call-tokens.ts';
import type { SentCall } from './call-tokens.ts';
import type { Pools } from './connection.ts';
import { ConnectionLost, isEndedByServer, isInternal } from './postgres-failures.ts';
import { storeFunctionFor } from './store-function.ts';
import type { Ending } from './wire-call.ts';

/** What to do about a team that another transaction has locked. */
export type LockRule =
  /** Fail if the lock is not free within a moment. */
  | 'wait briefly'
  /** Leave the team out. */
  | 'skip'
  /** Wait as long as a write may wait for any lock. */
  | 'wait';

/** How a call has ended. */
export type CallEnd =
  | { kind: 'answered'; answer: StoreAnswer }
  /** Nothing is stored, and nothing will be. A call that was in doubt may be sent again, whatever the error is. */
  | { kind: 'failed'; error: unknown; wasInDoubt: boolean }
  /** The connection was lost, and the database does not say in time whether the call was executed. */
  | { kind: 'unknown'; error: unknown };

export interface CallOptions {
  pools: Pools;
  connection: CallConnection;
  isCluster: boolean;
  nowUs: number | null;
  lockRule: LockRule;
}

/** Stores a batch in one round trip. */
export async function callStore(batch: BatchWrites, options: CallOptions): Promise<CallEnd> {
  const { pools, connection, isCluster, nowUs, lockRule } = options;
  const [teamId = ''] = batch.teamIds;
  const sent: SentCall = { teamId, token: randomUUID(), nowUs };
  const lockMs = lockRule === 'wait' ? limits.postgresLockMsMax : limits.postgresSharedLockMsMax;
  const values = [
    teamId,
    sent.token,
    nowUs === null ? null : String(nowUs),
    pools.synchronousCommit,
    String(lockMs),
    lockRule === 'skip' ? 'true' : 'false',
    ...batch.values(),
  ];
  let ending: Ending;
  try {
    ending = await connection.run([storeFunctionFor(isCluster).call, values]);
  } catch (error) {
    return { kind: 'failed', error, wasInDoubt: false };
  }
  const { answer, error } = ending;
  if (!error) return answered(answer?.[0] ?? '');
  if (!mayBeStored(ending, isCluster)) return { kind: 'failed', error, wasInDoubt: false };
  const fate = await fateOf(pools, sent);
  if (!fate) return { kind: 'unknown', error };
  return fate.kind === 'stored'
    ? answered(fate.answer)
    : { kind: 'failed', error, wasInDoubt: true };
}

function answered(text: string): CallEnd {
  return { kind: 'answered', answer: JSON.parse(text) as StoreAnswer };
}

/**
 * The commit comes after the answer, so an error that follows the answer leaves a doubt. An error in place of the answer comes from the
 * call itself, unless the connection was lost, or on a cluster that of the coordinator to the node. If the server has ended the connection
 * and said so, it has not executed the call.
 */
function mayBeStored({ answer, error }: Ending, isCluster: boolean): boolean {
  if (answer !== null || isInternal(error)) return true;
  return error instanceof ConnectionLost && (isCluster || !isEndedByServer(error));
}
