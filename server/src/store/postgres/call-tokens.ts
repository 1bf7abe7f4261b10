import { setTimeout as delay } from 'node:timers/promises';
import { limits } from '../../limits.ts';
import { inTransaction, run } from './connection.ts';
import type { Pools } from './connection.ts';
import { databaseUs } from './store-function.ts';

/**
 * Each call of the function that stores traces adds a random token to `store_calls`, with its answer, in its own transaction. So a server
 * that has lost the connection can find out what became of the call: it adds the same token.
 */

/** Waits for a call that is still running. The update also waits until a standby has what the call has stored. */
export const claimStatement = `
  insert into store_calls (team_id, token, expires_at_us)
  values ($1, $2, coalesce($3::bigint, ${databaseUs}) + ${limits.postgresRefusedCallLifeMs * 1000})
  on conflict (team_id, token) do update set expires_at_us = excluded.expires_at_us
  returning answer`;

export const removeStatement = `
  delete from store_calls where expires_at_us <= coalesce($1::bigint, ${databaseUs})`;

/** One call: the team under which its token is stored, and the time, or null for the database's clock. */
export interface SentCall {
  teamId: string;
  token: string;
  nowUs: number | null;
}

/** What became of a call: its answer, or `never` if it has stored nothing and never will, because its token is taken now. */
export type CallFate = { kind: 'stored'; answer: string } | { kind: 'never' };

/** Null if the database does not say within the time limit. */
export async function fateOf(
  { writing, begin }: Pools,
  { teamId, token, nowUs }: SentCall,
): Promise<CallFate | null> {
  const untilMs = performance.now() + limits.postgresDoubtMsMax;
  while (performance.now() < untilMs) {
    try {
      const { rows } = await inTransaction(writing, begin, (client) =>
        run(client, claimStatement, [teamId, token, nowUs]),
      );
      const answer = rows[0]?.['answer'];
      return typeof answer === 'string' ? { kind: 'stored', answer } : { kind: 'never' };
    } catch {
      await delay(limits.postgresPauseMsMax);
    }
  }
  return null;
}

/** Removes expired tokens now and then. */
export class TokenSweeper {
  readonly #pools: Pools;
  /** Null before the first write. */
  #nextMs: number | null = null;

  constructor(pools: Pools) {
    this.#pools = pools;
  }

  /** Never rejects. */
  async sweep(nowUs: number | null): Promise<void> {
    const nowMs = nowUs === null ? performance.now() : nowUs / 1000;
    const isDue = this.#nextMs !== null && nowMs >= this.#nextMs;
    if (this.#nextMs === null || isDue) this.#nextMs = nowMs + limits.postgresCallSweepMs;
    if (!isDue) return;
    const { writing, begin } = this.#pools;
    const remove = inTransaction(writing, begin, (client) => run(client, removeStatement, [nowUs]));
    // Another server may be removing them, or the next sweep will.
    await remove.catch(() => {});
  }
}
