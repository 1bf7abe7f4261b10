import type pg from 'pg';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../core/clock.ts';
import { limits } from '../../limits.ts';
import { expiryOf } from '../idempotency.ts';
import type { EarlierRequest } from '../idempotency.ts';
import { earlierFromRow } from '../key-rows.ts';
import type { TeamCounter } from '../sequencer.ts';
import { abandon, connect, run } from './connection.ts';
import type { Pools, Values } from './connection.ts';
import { ConnectionLost } from './postgres-failures.ts';
import { counterFromRow, rollupColumns } from './measures-rows.ts';
import { ofOneTeam } from './statements.ts';
import { TeamWrites } from './team-writes.ts';
import type { PackedWrite } from './team-writes.ts';

/** How one attempt at a batch ended. */
export type Attempt =
  | { kind: 'stored'; batch: TeamWrites }
  /** Nothing is stored, and nothing will be. */
  | { kind: 'failed'; error: unknown }
  /** The connection or a node failed during the commit: the batch may be stored, now or in a moment. */
  | { kind: 'doubtful'; batch: TeamWrites; error: unknown };

/**
 * Stores one team's batch in one transaction. The first round trip locks the team's counter; the second sends all rows and the
 * commit. The number of statements does not depend on the size of the batch.
 */
export async function attemptBatch(
  { writing, begin }: Pools,
  clock: Clock,
  teamId: string,
  writes: readonly PackedWrite[],
): Promise<Attempt> {
  let client: pg.PoolClient;
  try {
    client = await connect(writing);
  } catch (error) {
    return { kind: 'failed', error };
  }
  try {
    const [, counter] = await Promise.all([run(client, begin), lockTeam(client, teamId)]);
    const wallUs = clock();
    const earlier = await findRequests(client, teamId, writes, wallUs);
    const batch = new TeamWrites(teamId, counter, earlier, wallUs);
    for (const write of writes) batch.add(write);
    const statements = batch.traces.firstId === null ? [] : statementsOf(teamId, batch, wallUs);
    const attempt = await commitAll(client, batch, statements);
    // Unless the connection is lost, the transaction has ended and the connection can be reused.
    client.release(attempt.kind !== 'stored' && attempt.error instanceof ConnectionLost);
    return attempt;
  } catch (error) {
    await abandon(client, error);
    return { kind: 'failed', error };
  }
}

type Statement = [text: string, values: Values];

function statementsOf(teamId: string, batch: TeamWrites, wallUs: number): Statement[] {
  const { lastSeq, lastUs } = batch.counter;
  return [
    [ofOneTeam.insertTraces, [teamId, ...batch.traces.values()]],
    ...batch
      .deltas()
      .map((deltas): Statement => [ofOneTeam.addRollups, [teamId, ...rollupColumns(deltas)]]),
    ...addRequests(teamId, batch, wallUs),
    [ofOneTeam.moveCounter, [teamId, lastSeq, lastUs]],
  ];
}

/** If a statement fails, PostgreSQL skips the rest of the transaction, and the commit rolls back. */
async function commitAll(
  client: pg.ClientBase,
  batch: TeamWrites,
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

/** Waits until no other transaction of the team is in progress. If the team has no traces yet, its sequence starts at `firstSeq`. */
export async function lockTeam(
  client: pg.ClientBase,
  teamId: string,
  firstSeq = 1,
): Promise<TeamCounter> {
  const found = (await run(client, ofOneTeam.lockCounter, [teamId])).rows[0];
  if (found) return counterFromRow(found);
  // The team's first trace. If another transaction is adding the row too, this waits for it.
  await run(client, ofOneTeam.addCounter, [teamId, firstSeq]);
  return lockTeam(client, teamId);
}

async function findRequests(
  client: pg.ClientBase,
  teamId: string,
  writes: readonly PackedWrite[],
  wallUs: number,
): Promise<Map<string, EarlierRequest>> {
  const keyHashes = writes.flatMap(({ write }) => write.request?.keyHash ?? []);
  if (keyHashes.length === 0) return new Map();
  const { rows } = await run(client, ofOneTeam.findRequests, [teamId, keyHashes, wallUs]);
  return new Map(rows.map((row) => [row['key_hash'] as string, earlierFromRow(row)]));
}

function addRequests(teamId: string, { requests }: TeamWrites, wallUs: number): Statement[] {
  if (requests.length === 0) return [];
  const columns = [
    requests.map(({ request }) => request.keyHash),
    requests.map(({ request }) => request.bodyHash),
    requests.map(({ firstSeq }) => firstSeq),
    requests.map(({ count }) => count),
    requests.map(({ request }) => request.rejected),
  ];
  return [
    [ofOneTeam.forgetRequests, [teamId, wallUs]],
    [ofOneTeam.noteRequests, [teamId, expiryOf(wallUs), ...columns]],
  ];
}

/**
 * Finds out whether a doubtful commit succeeded. The old transaction holds the team's lock until it ends, even if its connection is
 * lost. Once we have the lock, it has ended, and its first trace shows whether it was committed. Null if the time limit passes first.
 */
export async function wasStored(
  pools: Pools,
  teamId: string,
  batch: TeamWrites,
): Promise<boolean | null> {
  const untilMs = performance.now() + limits.postgresDoubtMsMax;
  while (performance.now() < untilMs) {
    try {
      return await lookFor(pools, teamId, batch.traces.firstId);
    } catch {
      await delay(limits.postgresPauseMsMax);
    }
  }
  return null;
}

async function lookFor(
  { writing, begin }: Pools,
  teamId: string,
  traceId: string | null,
): Promise<boolean> {
  const client = await connect(writing);
  try {
    await run(client, begin);
    await lockTeam(client, teamId);
    const { rowCount } = await run(client, ofOneTeam.findTrace, [teamId, traceId]);
    // With synchronous replication, this commit also waits until the doubtful one has reached the standby.
    await run(client, 'commit');
    client.release();
    return rowCount === 1;
  } catch (error) {
    await abandon(client, error);
    throw error;
  }
}
