import type pg from 'pg';
import { calendarOf } from '../../core/calendar.ts';
import { rollupChanges } from '../../core/cost-changes.ts';
import type { CostChange, RepricedTrace } from '../../core/cost-changes.ts';
import type { RollSpeed } from '../../core/dimensions.ts';
import { limits } from '../../limits.ts';
import { amountColumn, sourceColumn } from '../reprice-sql.ts';
import { saveRun } from '../reprice-runs.ts';
import type { RepriceOutcome, RepriceRun, RepriceRuns, Repricer } from '../repricer.ts';
import { RollSize } from '../roll-size.ts';
import { deltasOf } from '../rollup-rows.ts';
import { countedFromRow } from '../trace-rows.ts';
import type { TeamMarks } from '../team-marks.ts';
import { arrayOfPlain, arrayOfText } from './array-literal.ts';
import { ask, inTransaction, run as runOn } from './connection.ts';
import type { Pools, Row, Values } from './connection.ts';
import { lockAllMarks } from './generations.ts';
import { ofRepricing, readCostStatements } from './reprice-statements.ts';
import { writeRollups } from './roll.ts';
import { runSteps } from './sql.ts';

const speeds: readonly RollSpeed[] = ['hot', 'wide'];

export function openRepricer({
  reading,
  writing,
  begin,
}: Pools): Omit<Repricer, keyof RepriceRuns> {
  const size = new RollSize(limits.postgresRollMsTarget, limits.rollRowsMin);

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
        async (client): Promise<RepriceOutcome> => {
          const { active, inactive } = await lockAllMarks(client, run.teamId);
          if (speeds.some((speed) => active.rolledSeq[speed] < toSeq)) return { kind: 'behind' };
          const { text, values } = costsOf(run, toSeq, limits.repriceWindowRows);
          const decided = decide((await runOn(client, text, values)).rows.map(repricedFromRow));
          await changeCosts(client, run.teamId, decided.changes);
          // Generations before the active one are being removed.
          const building = inactive.filter(({ generation }) => generation > active.generation);
          for (const marks of [active, ...building]) {
            await adjust(client, run.teamId, marks, decided.changes);
          }
          await runSteps(client, saveRun(decided.run, savedSeq));
          return { kind: 'done', ...decided };
        },
      );
      if (outcome.kind === 'done') size.note(outcome.changes.length, performance.now() - startMs);
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

async function changeCosts(
  client: pg.ClientBase,
  teamId: string,
  changes: readonly CostChange[],
): Promise<void> {
  await runOn(client, ofRepricing.changeCosts, [
    teamId,
    arrayOfPlain(changes.map(({ trace }) => trace.seq)),
    arrayOfPlain(changes.map(({ cost }) => cost[amountColumn])),
    arrayOfText(changes.map(({ cost }) => cost[sourceColumn])),
  ]);
}

async function adjust(
  client: pg.ClientBase,
  teamId: string,
  { generation, timeZone, rolledSeq }: TeamMarks,
  changes: readonly CostChange[],
): Promise<void> {
  for (const speed of speeds) {
    // What is after the mark is added later, with the new cost.
    const rolled = changes.filter(({ trace }) => trace.seq <= rolledSeq[speed]);
    const differences = rollupChanges(rolled, speed, calendarOf(timeZone));
    await writeRollups(client, teamId, generation, deltasOf(differences), null);
  }
}
