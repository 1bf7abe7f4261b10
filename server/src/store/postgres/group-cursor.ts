import type pg from 'pg';
import { limits } from '../../limits.ts';
import type { WideRead } from '../wide-reads.ts';
import { abandon, connect, run } from './connection.ts';
import { asFailure } from './postgres-failures.ts';
import { groupFromRow } from './measures-rows.ts';

/** A snapshot of a long list of groups, read through a cursor, so that it is never completely in memory. */
export async function openGroupCursor(
  pool: pg.Pool,
  statement: string,
  teamId: string,
): Promise<WideRead> {
  try {
    const client = await connect(pool);
    try {
      await run(client, 'begin isolation level repeatable read read only');
      await run(client, `declare groups no scroll cursor for ${statement}`, [teamId]);
      return readerOf(client);
    } catch (error) {
      await abandon(client, error);
      throw error;
    }
  } catch (error) {
    throw asFailure(error);
  }
}

function readerOf(client: pg.PoolClient): WideRead {
  /** The transaction ends after the fetch that is in progress. */
  let fetching: Promise<unknown> = Promise.resolve();
  return {
    async next() {
      const fetched = run(client, `fetch forward ${limits.groupChunkRows} from groups`);
      fetching = fetched.catch(() => {});
      try {
        return (await fetched).rows.map(groupFromRow);
      } catch (error) {
        throw asFailure(error);
      }
    },
    close() {
      void fetching.then(() => abandon(client, null));
    },
  };
}
