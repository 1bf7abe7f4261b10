import type { DatabaseSync } from 'node:sqlite';
import { allTime, dimensions, noMeasures } from '../../core/rollup.ts';
import { limits } from '../../limits.ts';
import type { TraceReader } from '../trace-reader.ts';
import { openAnalyticsCache } from './analytics-cache.ts';
import {
  groupFromRow,
  measureColumns,
  measuresFromRow,
  ofTeam,
  prepareMeasures,
  selectGroups,
} from './measures-rows.ts';
import type { ReadingClient } from './reading-client.ts';

/** Reads sums. Slow reads run on the reading thread. */
export function openRollupReader(
  db: DatabaseSync,
  reading: ReadingClient,
): Pick<TraceReader, 'total' | 'groups' | 'days'> {
  const readDays = prepareMeasures(
    db,
    `select day, ${measureColumns} from rollups
     where ${ofTeam} and dimension = ${dimensions.total} and day between ? and ? and key = ''`,
  );
  const readGroups = prepareMeasures(db, selectGroups);
  const countGroups = db.prepare(`
    select count(*) as count from (
      select 1 from rollups where ${ofTeam} and dimension = ? and day = ${allTime}
      limit ${limits.groupChunkRows + 1})`);
  const cache = openAnalyticsCache(db);

  const daysOf = (teamId: string, firstDay: number, lastDay: number) =>
    readDays
      .all(teamId, firstDay, lastDay)
      .map((row) => ({ day: Number(row[0]), measures: measuresFromRow(row, 1) }));

  return {
    async total(teamId) {
      return cache.get(`total ${teamId}`, () => {
        const [row] = daysOf(teamId, allTime, allTime);
        return row?.measures ?? noMeasures;
      });
    },
    async groups(teamId, name, rowsMax) {
      const dimension = dimensions[name];
      const groups = cache.get(`${name} ${teamId}`, () => {
        const count = countGroups.get(teamId, dimension)?.['count'] as number;
        // Sorting a hundred thousand names would block the main thread for too long.
        return count > limits.groupChunkRows
          ? null
          : readGroups.all(teamId, dimension).map(groupFromRow);
      });
      if (groups !== null) return { first: groups.slice(0, rowsMax ?? undefined), rest: null };
      if (rowsMax === null) return reading.allGroups(teamId, dimension);
      return { first: await reading.topGroups(teamId, dimension, rowsMax), rest: null };
    },
    async days(teamId, { firstDay, lastDay }) {
      return cache.get(`days ${firstDay} ${lastDay} ${teamId}`, () =>
        daysOf(teamId, firstDay, lastDay),
      );
    },
  };
}
