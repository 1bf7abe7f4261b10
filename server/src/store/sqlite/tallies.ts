import type { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.ts';
import type { TraceReader } from '../trace-reader.ts';
import { openAnalyticsCache } from './analytics-cache.ts';
import type { ReadingClient } from './reading-client.ts';
import { TallyReader } from './tally-reader.ts';

/** Answers questions about sums: short ones here, the others on the reading thread. */
export function openTallies(
  db: DatabaseSync,
  reading: ReadingClient,
): Pick<TraceReader, 'tallies' | 'timeZone'> {
  const reader = new TallyReader(db);
  const cache = openAnalyticsCache(db);
  const short = { tailRowsMax: limits.tailRowsMax, rollupRowsMax: limits.groupChunkRows };

  return {
    timeZone: async (teamId) => reader.timeZone(teamId),
    async tallies(teamId, query, rowsMax = null) {
      // Adding up a hundred thousand rollups would block the main thread for too long.
      const tallies = cache.get(`${teamId} ${JSON.stringify(query)}`, () =>
        reader.gather(teamId, query, short),
      );
      if (tallies !== null) return { first: tallies.slice(0, rowsMax ?? undefined), rest: null };
      const isList = query.interval === null && query.groupBy.length === 1;
      if (isList && rowsMax === null) return reading.list(teamId, query);
      return { first: await reading.gather(teamId, query, rowsMax), rest: null };
    },
  };
}
