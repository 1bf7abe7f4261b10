import type { DatabaseSync } from 'node:sqlite';
import type { SearchCriteria } from '../../core/query.ts';
import { limits } from '../../limits.ts';
import { payloadSearch } from '../payload-search.ts';
import type { SearchDriver } from '../trace-search.ts';
import { prepareArrays } from './array-statement.ts';
import { criteriaSql, errorTable, eventTime, isOfErrors } from './criteria-sql.ts';
import { rowIdOf, seqOfRowId, teamOfRowId } from './row-id.ts';
import { StatementCache } from './statement-cache.ts';
import { TeamSnapshots } from './team-snapshot.ts';
import type { TeamSnapshot } from './team-snapshot.ts';
import { prepareLookups } from './trace-lookups.ts';

/** Returns a function that makes the driver of a search about one team; null if there is no such team. */
export function prepareSearches(
  db: DatabaseSync,
): (teamId: string, criteria: SearchCriteria) => SearchDriver | null {
  const snapshots = new TeamSnapshots(db);
  const lookUp = prepareLookups(db);
  const statements = new StatementCache((sql) => prepareArrays(db, sql));
  return (teamId, criteria) => {
    const team = snapshots.read(teamId, (snapshot) => snapshot);
    return team && driverOf(db, statements, lookUp, team, criteria);
  };
}

const inList = 'key in (select (? << 40) | value from json_each(?))';

function driverOf(
  db: DatabaseSync,
  statements: StatementCache,
  lookUp: ReturnType<typeof prepareLookups>,
  team: TeamSnapshot,
  criteria: SearchCriteria,
): SearchDriver {
  const { teamNo, firstSeq, lastSeq } = team;
  const { text, values } = criteriaSql(criteria);
  const hasErrors = isOfErrors(criteria.filter);
  const table = hasErrors ? errorTable : 'traces';
  const seqsFrom = (from: string, where: string, order: string, ...bound: Bound[]): number[] => {
    const sql = `select ${seqOfRowId} from ${from} where ${where}${order}`;
    return statements
      .get(sql)
      .all(...bound)
      .map(([seq]) => seq as number);
  };
  const newestFirst = `${text} order by key desc`;
  const { names, matches } = payloadSearch(criteria);
  return {
    bounds: async () => ({ firstSeq, lastSeq }),
    lookUp: async (field, value, beforeSeq) => lookUp(team, field, value, beforeSeq),
    async inRange({ fromUs, toUs }, rowsMax) {
      const where = `${teamOfRowId} = ? and ${eventTime} >= ? and ${eventTime} < ? limit ?`;
      return seqsFrom('traces', where, '', teamNo, fromUs, toUs, rowsMax);
    },
    rangeRows: hasErrors ? limits.searchErrorRangeRowsMax : limits.searchRangeRowsMax,
    windowRows: hasErrors ? limits.searchErrorWindowRows : limits.searchWindowRows,
    async between(fromSeq, toSeq) {
      const where = `key between ${rowIdOf} and ${rowIdOf}`;
      return seqsFrom(table, where, newestFirst, teamNo, toSeq, teamNo, fromSeq, ...values);
    },
    async among(seqs) {
      return seqsFrom('traces', inList, newestFirst, teamNo, JSON.stringify(seqs), ...values);
    },
    async withPayloads(seqs) {
      const read = db.prepare(
        `select ${['zstd_mask', ...names].join(', ')} from trace_payloads where key = ${rowIdOf}`,
      );
      return seqs.filter((seq) => matches(read.get(teamNo, seq) ?? {}));
    },
    async createdAtUs(seq) {
      const read = statements.get(`select created_at_us from traces where key = ${rowIdOf}`);
      return read.all(teamNo, seq)[0]?.[0] as number;
    },
    async timesOf(seqs) {
      const read = statements.get(`select ${eventTime}, ${seqOfRowId} from traces where ${inList}`);
      const rows = read.all(teamNo, JSON.stringify(seqs));
      return rows.map(([us, seq]) => ({ us: us as number, seq: seq as number }));
    },
  };
}

type Bound = string | number;
