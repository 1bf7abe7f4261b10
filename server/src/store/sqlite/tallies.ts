import type { DatabaseSync } from 'node:sqlite';
import type { TallyQuery } from '../../core/query.ts';
import type { TraceReader } from '../trace-reader.ts';
import { openAnalyticsCache } from './analytics-cache.ts';
import type { ReadingClient } from './reading-client.ts';
import { Sums } from './sums.ts';
import type { SumsPlan } from './sums.ts';

type ShortPlan = Extract<SumsPlan, { kind: 'sums' }>;

/** Answers questions about sums: short ones here, the others on the reading thread. */
export function openTallies(
  db: DatabaseSync,
  reading: ReadingClient,
): Pick<TraceReader, 'tallies' | 'ranking' | 'timeZone'> {
  const sums = new Sums(db);
  const cache = openAnalyticsCache(db);

  /** Null if the answer would hold up other requests for too long. */
  function briefly<T>(
    teamId: string,
    query: TallyQuery,
    kind: string,
    answer: (plan: ShortPlan) => T,
  ): T | null {
    return cache.get(`${teamId} ${kind} ${JSON.stringify(query)}`, () =>
      sums.read(teamId, query, (plan) =>
        plan.kind === 'sums' && sums.isShort(plan.question) ? answer(plan) : null,
      ),
    );
  }

  return {
    timeZone: async (teamId) => sums.timeZone(teamId),
    async ranking(teamId, query, order, groupsMax, isWanted) {
      const kind = JSON.stringify([order, groupsMax]);
      const report = briefly(teamId, query, kind, ({ question }) =>
        sums.rank(question, order, groupsMax),
      );
      return report ?? reading.rank(teamId, query, order, groupsMax, isWanted);
    },
    async tallies(teamId, query, rowsMax = null) {
      const tallies = briefly(teamId, query, 'list', ({ question }) => sums.list(question));
      if (tallies !== null) return { first: tallies.slice(0, rowsMax ?? undefined), rest: null };
      const isList = query.interval === null && query.groupBy.length === 1;
      if (isList && rowsMax === null) return reading.list(teamId, query);
      return { first: await reading.gather(teamId, query, rowsMax), rest: null };
    },
  };
}
