import type pg from 'pg';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../core/clock.ts';
import { limits } from '../../limits.ts';
import { lockTeam } from './batch-statements.ts';
import type { BatchStatements } from './batch-statements.ts';
import { BatchWrites } from './batch-writes.ts';
import type { PackedWrite } from './batch-writes.ts';
import { abandon, beginOn, connect, run } from './connection.ts';
import type { Pools } from './connection.ts';
import { ConnectionLost } from './postgres-failures.ts';
import type { Statement } from './wire-call.ts';
import { ofOneTeam } from './statements.ts';

/** How one attempt at a batch ended. */
export type Attempt =
  | { kind: 'stored'; batch: BatchWrites }
  /** Nothing is stored, and nothing will be. */
  | { kind: 'failed'; error: unknown }
  /** The connection or a node failed during the commit: the batch may be stored, now or in a moment. */
  | { kind: 'doubtful'; batch: BatchWrites; error: unknown };

/**
 * Stores a batch in one transaction. The first round trip locks the counters; the second sends all rows and the commit. The number of
 * statements does not depend on the size of the batch or on the number of its teams.
 */
export async function attemptBatch(
  { writing }: Pick<Pools, 'writing'>,
  clock: Clock,
  writes: readonly PackedWrite[],
  statements: BatchStatements,
): Promise<Attempt> {
  let client: pg.PoolClient;
  try {
    client = await connect(writing);
  } catch (error) {
    return { kind: 'failed', error };
  }
  try {
    const teams = await statements.begin(client, writes, clock());
    // After the locks, so that times follow the sequence.
    const wallUs = clock();
    const batch = new BatchWrites(teams, wallUs, statements.rows());
    for (const write of writes) batch.add(write);
    const attempt = await commitAll(client, batch, statements.write(batch, wallUs));
    // Unless the connection is lost, the transaction has ended and the connection can be reused.
    client.release(attempt.kind !== 'stored' && attempt.error instanceof ConnectionLost);
    return attempt;
  } catch (error) {
    await abandon(client, error);
    return { kind: 'failed', error };
  }
}

/** If a statement fails, PostgreSQL skips the rest of the transaction, and the commit rolls back. */
async function commitAll(
  client: pg.ClientBase,
  batch: BatchWrites,
  statements: readonly Statement[],
): Promise<Attempt> {
  const answers = await Promise.allSettled([
    ...statements.map(([text, values]) => run(client, text, values)),
    run(client, 'commit'),
  ]);
  const failed = answers.find(({ status }) => status === 'rejected');
  const last = answers.at(-1);
  if (failed?.status === 'rejected') {
    const error: unknown = failed.reason;
    // A Citus coordinator reports the same error whether a node rejected the commit or the node's reply was lost.
    const isDoubtful = error instanceof ConnectionLost || failed === last;
    return isDoubtful && statements.length > 0
      ? { kind: 'doubtful', batch, error }
      : { kind: 'failed', error };
  }
  const command = last?.status === 'fulfilled' ? last.value.command : 'nothing';
  if (command === 'COMMIT') return { kind: 'stored', batch };
  return { kind: 'failed', error: new Error(`the reply to the commit was ${command}`) };
}

/**
 * Finds out whether a doubtful commit succeeded. The transaction is atomic, so one trace of one team shows it. The old transaction holds
 * the team's lock until it ends, even if its connection is lost. Once we have the lock, it has ended, or it was not executed yet; then
 * moving the fence prevents that. Null if the time limit passes first.
 */
export async function wasStored(pools: Pools, { rows }: BatchWrites): Promise<boolean | null> {
  const { first } = rows;
  if (!first) return false;
  const untilMs = performance.now() + limits.postgresDoubtMsMax;
  while (performance.now() < untilMs) {
    try {
      return await lookFor(pools, first.teamId, first.id);
    } catch {
      await delay(limits.postgresPauseMsMax);
    }
  }
  return null;
}

async function lookFor(
  { writing, begin }: Pools,
  teamId: string,
  traceId: string,
): Promise<boolean> {
  const client = await connect(writing);
  try {
    await beginOn(client, begin);
    await lockTeam(client, teamId);
    const { rowCount } = await run(client, ofOneTeam.findTrace, [teamId, traceId]);
    if (rowCount === 0) await run(client, ofOneTeam.moveFence, [teamId]);
    // With synchronous replication, this commit also waits until the doubtful one has reached the standby.
    await run(client, 'commit');
    client.release();
    return rowCount === 1;
  } catch (error) {
    await abandon(client, error);
    throw error;
  }
}
