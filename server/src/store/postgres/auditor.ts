import type pg from 'pg';
import { counted } from '../../core/counted.ts';
import { dimensionSets } from '../../core/dimensions.ts';
import type { CountedTrace } from '../../core/rollup.ts';
import { uuidBytes } from '../../core/uuid.ts';
import { limits } from '../../limits.ts';
import { addedColumns } from '../../query/sums-sql.ts';
import type { AuditedRollup, AuditedTrace, Auditor } from '../audit.ts';
import { withStoredSums } from '../audit.ts';
import { auditedFromRow, countedFromRow } from '../trace-rows.ts';
import { sumOverNodes } from './cluster.ts';
import { abandon, ask, connect, run } from './connection.ts';
import type { Pools, Row, Values } from './connection.ts';
import { asFailure } from './postgres-failures.ts';
import { counterFromRow, marksFromRow } from './marks-rows.ts';
import type { ChangeMarks } from './marks-rows.ts';
import { ofChanges, ofMarks, ofRollups } from './rollup-statements.ts';
import { beginSnapshot } from './snapshot.ts';
import { ofOneTeam, overAllTeams } from './statements.ts';
import { groupFromRow } from './tally-statements.ts';

/** Each audit is one transaction on its own connection. It may take minutes and does not block writes. */
export function openAuditor({ reading }: Pools): Auditor {
  return {
    async audit(teamId, look) {
      const client = await connect(reading).catch((error: unknown) => {
        throw asFailure(error);
      });
      try {
        await run(client, beginSnapshot);
        const team = await run(client, 'select 1 from teams where id = $1', [teamId]);
        if (team.rowCount !== 1) throw new Error(`there is no team ${teamId}`);
        const counter = (await run(client, ofOneTeam.readCounter, [teamId])).rows[0];
        const marks = marksFromRow((await run(client, ofMarks.readMarks, [teamId])).rows[0]);
        const result = await look({
          ...counterFromRow(counter),
          marks,
          traces: tracesOf(client, teamId, await pendingChanges(client, teamId, marks)),
          rollups: rollupsOf(client, teamId, marks.generation),
          // PostgreSQL keeps its indexes right.
          lookups: null,
        });
        await run(client, 'commit');
        client.release();
        return result;
      } catch (error) {
        await abandon(client, error);
        throw asFailure(error);
      }
    },

    async checkStorage() {
      const problems: string[] = [];
      // If the database has checksums, PostgreSQL counts here every damaged page that it has found.
      const failures = await sumOverNodes({ reading }, countDamage);
      if (failures > 0) problems.push(`PostgreSQL has found ${counted(failures, 'damaged page')}`);
      const orphans = await ask(
        reading,
        overAllTeams.findOrphans,
        [],
        limits.postgresUnhurriedMsMax,
      );
      for (const row of orphans)
        problems.push(`rows of a team that does not exist: ${String(row['team_id'])}`);
      return problems;
    },
  };
}

const countDamage = `
  select coalesce(sum(checksum_failures), 0) from pg_stat_database where datname = current_database()`;

/** A trace with a change that is not in the rollups yet has its values from before it, which are those that the rollups contain. */
async function* tracesOf(
  client: pg.ClientBase,
  teamId: string,
  pending: ReadonlyMap<number, CountedTrace>,
): AsyncGenerator<AuditedTrace[]> {
  for (let seq: number | undefined = -1; seq !== undefined;) {
    const { rows } = await run(client, ofOneTeam.auditTraces, [teamId, seq]);
    const chunk = rows.map((row) => withStoredSums(auditedFromRow(row), row, pending));
    if (chunk.length > 0) yield chunk;
    seq = chunk.at(-1)?.seq;
  }
}

/** The values of traces before the first change after the mark. */
async function pendingChanges(
  client: pg.ClientBase,
  teamId: string,
  { changeNo, seq }: ChangeMarks,
): Promise<Map<number, CountedTrace>> {
  const { rows } = await run(client, ofChanges.readPending, [teamId, changeNo, seq]);
  return new Map(rows.map((row) => [Number(row['seq']), countedFromRow(row)]));
}

/** Smaller than every key of a rollup. */
const beforeAll = [-1, -1, 0, '00000000-0000-0000-0000-000000000000'] as const;

async function* rollupsOf(
  client: pg.ClientBase,
  teamId: string,
  generation: number,
): AsyncGenerator<AuditedRollup[]> {
  let last: Row | undefined;
  do {
    const after: Values = last
      ? [last['set_no'], last['grain'], last['bucket'], last['group_hash']]
      : beforeAll;
    const { rows } = await run(client, ofRollups.auditRows, [teamId, generation, ...after]);
    if (rows.length > 0) yield rows.map(rollupOf);
    last = rows.at(-1);
  } while (last);
}

function rollupOf(row: Row): AuditedRollup {
  const set = row['set_no'] as number;
  // The columns of other sets are empty in this row; they are not part of its group.
  const fields: readonly string[] =
    dimensionSets.find(({ number }) => number === set)?.fields ?? [];
  const ofSet = Object.entries(row).filter(
    ([name]) => name === 'is_error' || fields.includes(name),
  );
  return {
    set,
    grain: row['grain'] as number,
    bucket: Number(row['bucket']),
    hash: uuidBytes(row['group_hash'] as string),
    sums: addedColumns.map((name) => BigInt(row[name] as string)),
    latencies: row['latencies'] as Uint8Array,
    group: row['is_error'] === null ? null : groupFromRow(Object.fromEntries(ofSet)),
  };
}
