import type pg from 'pg';
import type { CostChange, RepricedTrace } from '../../core/cost-changes.ts';
import { costOf } from '../../core/trace-cost.ts';
import { limits } from '../../limits.ts';
import { amountColumn, sourceColumn } from '../reprice-sql.ts';
import { saveRun } from '../reprice-runs.ts';
import type { RepriceDecision, RepriceRun, RepriceRuns, Repricer } from '../repricer.ts';
import { RollSize } from '../roll-size.ts';
import { countedFromRow } from '../trace-rows.ts';
import { arrayOfPlain, arrayOfText } from './array-literal.ts';
import { ask, inTransaction, run as runOn } from './connection.ts';
import type { Pools, Row, Values } from './connection.ts';
import { ofRepricing, readCostStatements } from './reprice-statements.ts';
import { ofChanges } from './rollup-statements.ts';
import { runSteps } from './sql.ts';

export function openRepricer({
  reading,
  writing,
  begin,
}: Pools): Omit<Repricer, keyof RepriceRuns> {
  const size = new RollSize(limits.repriceMsTarget, limits.rollRowsMin);

  return {
    async repriceWindow(run) {
      const toSeq = Math.min(run.doneSeq + limits.repriceWindowRows, run.lastSeq);
      const rowsMax = size.rows;
      const { text, values } = costsOf(run, toSeq, rowsMax);
      const traces = (await ask(reading, text, values)).map(repricedFromRow);
      const last = traces.at(-1);
      return { traces, toSeq: last && traces.length === rowsMax ? last.seq : toSeq };
    },
    async reprice(run, savedSeq, toSeq, decide) {
      const startMs = performance.now();
      const outcome = await inTransaction(
        writing,
        begin,
        async (client): Promise<RepriceDecision> => {
          const changeNo = await lockChanges(client, run.teamId);
          const { text, values } = costsOf(run, toSeq, limits.repriceWindowRows);
          const decided = decide((await runOn(client, text, values)).rows.map(repricedFromRow));
          await changeCosts(client, run.teamId, changeNo, decided.changes);
          await runSteps(client, saveRun(decided.run, savedSeq));
          return decided;
        },
      );
      size.note(outcome.changes.length, performance.now() - startMs);
      return outcome;
    },
  };
}

function costsOf(
  { teamId, doneSeq, filter }: RepriceRun,
  toSeq: number,
  rowsMax: number,
): { text: string; values: Values } {
  const { model, fromUs, toUs, scope } = filter;
  return {
    text: readCostStatements[scope],
    values: [teamId, doneSeq, toSeq, model, fromUs, toUs, rowsMax],
  };
}

function repricedFromRow(row: Row): RepricedTrace {
  return Object.assign(countedFromRow(row), { seq: Number(row['seq']) });
}

/** The number of the last change of a team. */
async function lockChanges(client: pg.ClientBase, teamId: string): Promise<number> {
  await runOn(client, ofChanges.addCounter, [teamId]);
  const [row] = (await runOn(client, ofChanges.lockCounter, [teamId])).rows;
  return Number(row?.['last_change_no']);
}

/** Logs each change for the rollups. */
async function changeCosts(
  client: pg.ClientBase,
  teamId: string,
  lastChangeNo: number,
  changes: readonly CostChange[],
): Promise<void> {
  if (changes.length === 0) return;
  const seqs = arrayOfPlain(changes.map(({ trace }) => trace.seq));
  const logged = [teamId, lastChangeNo, seqs, Date.now() * 1000];
  const parts = changes.map(({ cost }) => costOf(cost));
  const keptUs = (Date.now() - limits.changesKeptMs) * 1000;
  await runOn(client, ofChanges.prune, [teamId, keptUs, 4 * changes.length]);
  await runOn(client, ofChanges.logBefore, logged);
  await runOn(client, ofRepricing.changeCosts, [
    teamId,
    seqs,
    arrayOfPlain(changes.map(({ cost }) => cost[amountColumn])),
    arrayOfText(changes.map(({ cost }) => cost[sourceColumn])),
    arrayOfPlain(parts.map((part) => part?.micros ?? null)),
    arrayOfPlain(parts.map((part) => part?.picos ?? null)),
  ]);
  await runOn(client, ofChanges.logAfter, logged);
  await runOn(client, ofChanges.moveCounter, [teamId, lastChangeNo + 2 * changes.length]);
}
