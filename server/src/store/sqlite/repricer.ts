import type { DatabaseSync } from 'node:sqlite';
import type { CostChange, RepricedTrace } from '../../core/cost-changes.ts';
import { costOf } from '../../core/trace-cost.ts';
import { limits } from '../../limits.ts';
import { amountColumn, costScopes, eventTime, sourceColumn } from '../reprice-sql.ts';
import { saveRun } from '../reprice-runs.ts';
import type { RepriceDecision, RepriceRun, RepriceRuns, Repricer } from '../repricer.ts';
import { RollSize } from '../roll-size.ts';
import { addedColumns, narrowColumns } from '../trace-rows.ts';
import { inTransaction, retryWhileBusy } from './connection.ts';
import { prepareArrays } from './array-statement.ts';
import { countedColumns, countedOfValues } from './counted-traces.ts';
import type { RowValues } from './array-statement.ts';
import { prepareMarks } from './roll-marks.ts';
import { rowIdOf, seqOfRowId } from './row-id.ts';
import { openStatements, runSteps } from './sql.ts';

const teamNo = '(select no from teams where id = ?)';

/** Statements are prepared when they are needed, since a server never changes costs. */
export function openRepricer(
  db: DatabaseSync,
  reading: DatabaseSync,
): Omit<Repricer, keyof RepriceRuns> {
  let opened: Changing | null = null;
  const changing = (): Changing => (opened ??= openChanging(db, reading));
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
        (): RepriceDecision => {
          // Without the time that it has waited for a busy file.
          startMs = performance.now();
          const decided = decide(readTraces(db, run, toSeq, limits.repriceWindowRows));
          changing().apply(run.teamId, decided.changes, Date.now() * 1000);
          runSteps(saveRun(decided.run, savedSeq), openStatements(db));
          return decided;
        },
        inTransaction,
      );
      size.note(outcome.changes.length, performance.now() - startMs);
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

/** Each entry of the log is followed by the one after the change. */
const loggedColumns = ['created_at_us', ...narrowColumns, addedColumns].join(', ');

/** Changes costs, and logs each change for the rollups. */
function openChanging(db: DatabaseSync, reading: DatabaseSync): Changing {
  const readTeam = db.prepare('select no, first_change_no, last_change_no from teams where id = ?');
  const marksOf = prepareMarks(reading);
  const readFirstKept = db.prepare(
    `select ${seqOfRowId} as no from trace_changes
     where key >= ${rowIdOf} and key < ${rowIdOf} and changed_at_us >= ? order by key limit 1`,
  );
  const prune = db.prepare(
    `delete from trace_changes where key >= ${rowIdOf} and key < ${rowIdOf}`,
  );
  const setFirst = db.prepare('update teams set first_change_no = ? where no = ?');
  const setLast = db.prepare('update teams set last_change_no = ? where no = ?');
  const log = db.prepare(
    `insert into trace_changes (key, seq, weight, token, changed_at_us, ${loggedColumns})
     select ((?1 << 40) | ?2), ?3, ?4, random(), ?5, ${loggedColumns} from traces where key = ((?1 << 40) | ?3)`,
  );
  log.setReadBigInts(true);
  const update = db.prepare(
    `update traces set ${amountColumn} = ?, ${sourceColumn} = ?, cost_micros = ?, cost_picos = ? where key = ${rowIdOf}`,
  );
  /**
   * Removes the oldest entries that every generation contains. They are kept for a while, since a power failure may take the rollup file back
   * to older marks; the entry at a mark is kept as long as the mark.
   */
  function pruneLog(no: number, firstNo: number, entriesMax: number, nowUs: number): void {
    const marks = marksOf(no);
    const toNo = Math.min(firstNo + entriesMax, ...marks.map(({ changeNo }) => changeNo));
    if (marks.length === 0 || toNo <= firstNo) return;
    const keptUs = nowUs - limits.changesKeptMs * 1000;
    const kept = readFirstKept.get(no, firstNo, no, toNo, keptUs);
    const endNo = (kept?.['no'] as number | undefined) ?? toNo;
    prune.run(no, firstNo, no, endNo);
    setFirst.run(endNo, no);
  }

  return {
    apply(teamId, changes, nowUs) {
      const row = readTeam.get(teamId);
      const no = row?.['no'] as number;
      let changeNo = row?.['last_change_no'] as number;
      pruneLog(no, row?.['first_change_no'] as number, 4 * changes.length, nowUs);
      for (const { trace, cost } of changes) {
        const parts = costOf(cost);
        log.run(no, ++changeNo, trace.seq, -1, nowUs);
        update.run(
          cost[amountColumn],
          cost[sourceColumn],
          parts?.micros ?? null,
          parts?.picos ?? null,
          no,
          trace.seq,
        );
        log.run(no, ++changeNo, trace.seq, 1, nowUs);
      }
      setLast.run(changeNo, no);
    },
  };
}

interface Changing {
  apply(teamId: string, changes: readonly CostChange[], nowUs: number): void;
}
