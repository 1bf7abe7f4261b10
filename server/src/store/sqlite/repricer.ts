import type { DatabaseSync } from 'node:sqlite';
import { calendarOf } from '../../core/calendar.ts';
import { rollupChanges } from '../../core/cost-changes.ts';
import type { CostChange, RepricedTrace } from '../../core/cost-changes.ts';
import type { RollSpeed } from '../../core/dimensions.ts';
import { limits } from '../../limits.ts';
import { amountColumn, costScopes, eventTime, sourceColumn } from '../reprice-sql.ts';
import { saveRun } from '../reprice-runs.ts';
import type { RepriceOutcome, RepriceRun, RepriceRuns, Repricer } from '../repricer.ts';
import { RollSize } from '../roll-size.ts';
import type { TeamMarks } from '../team-marks.ts';
import { inUnsyncedTransaction, retryWhileBusy } from './connection.ts';
import { countedColumns, countedOfValues, prepareArrays } from './counted-traces.ts';
import type { RowValues } from './counted-traces.ts';
import { openRollupTables } from './rollup-tables.ts';
import type { RollupTables } from './rollup-tables.ts';
import { rowIdOf } from './row-id.ts';
import { openStatements, runSteps } from './sql.ts';

const speeds: readonly RollSpeed[] = ['hot', 'wide'];
const teamNo = '(select no from teams where id = ?)';

/** Statements are prepared when they are needed, since a server never changes costs. */
export function openRepricer(
  db: DatabaseSync,
  reading: DatabaseSync,
): Omit<Repricer, keyof RepriceRuns> {
  let opened: Changing | null = null;
  const changing = (): Changing => (opened ??= openChanging(db));
  const size = new RollSize(limits.repriceMsTarget, limits.rollRowsMin);

  return {
    async repriceWindow(run) {
      const toSeq = Math.min(run.doneSeq + limits.repriceWindowRows, run.lastSeq);
      const rowsMax = size.rows;
      const traces = readTraces(reading, run, toSeq, rowsMax);
      const last = traces.at(-1);
      return { traces, toSeq: last && traces.length === rowsMax ? last.seq : toSeq };
    },
    async reprice(run, savedSeq, toSeq, decide) {
      let startMs = 0;
      const outcome = await retryWhileBusy(
        db,
        (): RepriceOutcome => {
          // Without the time that it has waited for a busy file.
          startMs = performance.now();
          const generations = changing().generations(run.teamId);
          const isBehind = speeds.some((speed) => generations.active.rolledSeq[speed] < toSeq);
          if (isBehind) return { kind: 'behind' };
          const decided = decide(readTraces(db, run, toSeq, limits.repriceWindowRows));
          changing().apply(generations, decided.changes);
          runSteps(saveRun(decided.run, savedSeq), openStatements(db));
          return { kind: 'done', ...decided };
        },
        inUnsyncedTransaction,
      );
      if (outcome.kind === 'done') size.note(outcome.changes.length, performance.now() - startMs);
      return outcome;
    },
  };
}

function readTraces(
  db: DatabaseSync,
  { teamId, doneSeq, filter }: RepriceRun,
  toSeq: number,
  rowsMax: number,
): RepricedTrace[] {
  const { fromUs, toUs, model, scope } = filter;
  const bounds: [condition: string, value: string | number | null][] = [
    ['model = ?', model],
    [`${eventTime} >= ?`, fromUs],
    [`${eventTime} < ?`, toUs],
  ];
  const used = bounds.filter(([, value]) => value !== null);
  const conditions = [costScopes[scope], ...used.map(([condition]) => condition)];
  const rowId = rowIdOf.replace('?', teamNo);
  const rows = prepareArrays(
    db,
    `select ${countedColumns} from traces
     where key between ${rowId} and ${rowId} and ${conditions.join(' and ')} order by key limit ?`,
  ).all(teamId, doneSeq + 1, teamId, toSeq, ...used.map(([, value]) => value), rowsMax);
  return rows.map((row: RowValues) =>
    Object.assign(countedOfValues(row), { seq: row[0] as number }),
  );
}

interface Generations {
  teamNo: number;
  active: TeamMarks;
  building: TeamMarks | null;
}

interface Changing {
  generations(teamId: string): Generations;
  apply(generations: Generations, changes: readonly CostChange[]): void;
}

function openChanging(db: DatabaseSync): Changing {
  const tables: RollupTables = openRollupTables(db);
  const readTeam = db.prepare('select no from teams where id = ?');
  const update = db.prepare(
    `update traces set ${amountColumn} = ?, ${sourceColumn} = ? where key = ${rowIdOf}`,
  );
  return {
    generations(teamId) {
      const no = readTeam.get(teamId)?.['no'] as number;
      const active = tables.marks(no);
      if (!active) throw new Error(`team ${teamId} has no marks`);
      return { teamNo: no, active, building: tables.marks(no, 'building') };
    },
    apply({ teamNo: no, active, building }, changes) {
      for (const { trace, cost } of changes) {
        update.run(cost[amountColumn], cost[sourceColumn], no, trace.seq);
      }
      for (const marks of building ? [active, building] : [active]) {
        for (const speed of speeds) {
          // What is after the mark is added later, with the new cost.
          const rolled = changes.filter(({ trace }) => trace.seq <= marks.rolledSeq[speed]);
          const calendar = calendarOf(marks.timeZone);
          tables.adjust(no, marks.generation, speed, rollupChanges(rolled, speed, calendar));
        }
      }
    },
  };
}
