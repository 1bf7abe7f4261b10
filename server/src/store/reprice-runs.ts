import { RepriceResult } from '../core/reprice.ts';
import type { ModelResult, RepriceFilter } from '../core/reprice.ts';
import { OperatorError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { RepriceRequest, RepriceRun, RepriceRuns } from './repricer.ts';
import { numberOrNull, statement, write } from './sql.ts';
import type { Row, Sql, Steps } from './sql.ts';

const columns = 'id, started_at_us, finished_at_us, run_by, request, done_seq, last_seq, result';

export const runStatements = {
  read: `
    select ${columns} from reprice_runs
    where team_id = ?1 order by started_at_us desc limit ${limits.repriceRunsMax}`,
  add: `
    insert into reprice_runs (team_id, ${columns}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)`,
  save: `
    update reprice_runs set done_seq = ?4, finished_at_us = ?5, result = ?6
    where team_id = ?1 and id = ?2 and done_seq = ?3 and finished_at_us is null`,
};

export function openRepriceRuns(sql: Sql): RepriceRuns {
  return {
    async repriceRuns(teamId) {
      const rows = await sql.all(runStatements.read, [teamId]);
      return rows.map((row) => runFromRow(row, teamId));
    },
    async addRepriceRun(run) {
      const { id, teamId, startedAtUs, finishedAtUs, runBy, doneSeq, lastSeq } = run;
      const asked = JSON.stringify({ ...run.request, filter: run.filter });
      const begun = [teamId, id, startedAtUs, finishedAtUs, runBy, asked];
      await write(sql, runStatements.add, [...begun, doneSeq, lastSeq, modelsText(run.result)]);
    },
    saveRepriceRun: (run, savedSeq) => sql.transaction(() => saveRun(run, savedSeq)),
  };
}

/** Stores how far a run is. Throws if the stored run is not at `savedSeq`. */
export function* saveRun(
  { id, teamId, doneSeq, finishedAtUs, result }: RepriceRun,
  savedSeq: number,
): Steps<void> {
  const values = [teamId, id, savedSeq, doneSeq, finishedAtUs, modelsText(result)];
  const { changes } = yield statement(runStatements.save, values);
  if (changes === 1) return;
  throw new OperatorError(
    'Another process continues the same run. Wait until it has ended, then run this again.',
  );
}

function runFromRow(row: Row, teamId: string): RepriceRun {
  const { filter, ...request } = JSON.parse(row['request'] as string) as RepriceRequest & {
    filter: RepriceFilter;
  };
  return {
    id: row['id'] as string,
    teamId,
    startedAtUs: Number(row['started_at_us']),
    finishedAtUs: numberOrNull(row['finished_at_us']),
    runBy: row['run_by'] as string,
    request,
    filter,
    doneSeq: Number(row['done_seq']),
    lastSeq: Number(row['last_seq']),
    result: new RepriceResult(limits.repriceModelsMax, readModels(row['result'] as string)),
  };
}

/** JSON has no integers of this size. */
function modelsText(result: RepriceResult): string {
  return JSON.stringify(
    result.models().map((sums) => ({
      ...sums,
      before: String(sums.before),
      after: String(sums.after),
    })),
  );
}

function readModels(text: string): ModelResult[] {
  const models = JSON.parse(text) as (Omit<ModelResult, 'before' | 'after'> & {
    before: string;
    after: string;
  })[];
  return models.map((sums) => ({
    ...sums,
    before: BigInt(sums.before),
    after: BigInt(sums.after),
  }));
}
