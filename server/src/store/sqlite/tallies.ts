import type { DatabaseSync } from 'node:sqlite';
import type { TallyQuery } from '../../core/query.ts';
import { reportOn } from '../../core/report.ts';
import { limits } from '../../limits.ts';
import type { TraceReader } from '../trace-reader.ts';
import { openAnalyticsCache } from './analytics-cache.ts';
import type { ReadingClient } from './reading-client.ts';
import { TallyReader } from './tally-reader.ts';

/** Answers questions about sums: short ones here, the others on the reading thread. */
export function openTallies(
  db: DatabaseSync,
  reading: ReadingClient,
): Pick<TraceReader, 'tallies' | 'ranking' | 'timeZone'> {
  const reader = new TallyReader(db);
  const cache = openAnalyticsCache(db);
  const short = { tailRowsMax: limits.tailRowsMax, rollupRowsMax: limits.groupChunkRows };

  /** Null if there is too much to add up: a hundred thousand rollups would block the main thread for too long. */
  const briefly = (teamId: string, query: TallyQuery) =>
    cache.get(`${teamId} ${JSON.stringify(query)}`, () => reader.gather(teamId, query, short));

  return {
    timeZone: async (teamId) => reader.timeZone(teamId),
    async ranking(teamId, query, order, groupsMax, isWanted) {
      const tallies = briefly(teamId, query);
      if (tallies !== null) return reportOn(query, tallies, order, groupsMax);
      return reading.rank(teamId, query, order, groupsMax, isWanted);
    },
    async tallies(teamId, query, rowsMax = null) {
      const tallies = briefly(teamId, query);
      if (tallies !== null) return { first: tallies.slice(0, rowsMax ?? undefined), rest: null };
      const isList = query.interval === null && query.groupBy.length === 1;
      if (isList && rowsMax === null) return reading.list(teamId, query);
      return { first: await reading.gather(teamId, query, rowsMax), rest: null };
    },
  };
}
