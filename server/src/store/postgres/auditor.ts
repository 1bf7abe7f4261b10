import type pg from 'pg';
import { counted } from '../../core/counted.ts';
import type { Dimension, Rollup, RollupId } from '../../core/rollup.ts';
import { limits } from '../../limits.ts';
import type { AuditedTrace, Auditor } from '../audit.ts';
import { auditedFromRow } from '../trace-rows.ts';
import { sumOverNodes } from './cluster.ts';
import { abandon, ask, connect, run } from './connection.ts';
import type { Pools } from './connection.ts';
import { asFailure } from './postgres-failures.ts';
import { counterFromRow, measuresFromRow } from './measures-rows.ts';
import { ofOneTeam, ofSmallTables, overAllTeams } from './statements.ts';

/** Every statement of the transaction sees the same snapshot. */
const beginLooking = 'begin isolation level repeatable read read only';

/** Each audit is one transaction on its own connection. It may take minutes and does not block writes. */
export function openAuditor({ reading }: Pools): Auditor {
  return {
    async audit(teamId, look) {
      const client = await connect(reading).catch((error: unknown) => {
        throw asFailure(error);
      });
      try {
        await run(client, beginLooking);
        const team = await run(client, ofSmallTables.readTeamById, [teamId]);
        if (team.rowCount !== 1) throw new Error(`there is no team ${teamId}`);
        const counter = (await run(client, ofOneTeam.readCounter, [teamId])).rows[0];
        const result = await look({
          ...counterFromRow(counter),
          traces: tracesOf(client, teamId),
          rollups: rollupsOf(client, teamId),
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

async function* tracesOf(client: pg.ClientBase, teamId: string): AsyncGenerator<AuditedTrace[]> {
  for (let seq: number | undefined = -1; seq !== undefined;) {
    const { rows } = await run(client, ofOneTeam.auditTraces, [teamId, seq]);
    const chunk = rows.map(auditedFromRow);
    if (chunk.length > 0) yield chunk;
    seq = chunk.at(-1)?.seq;
  }
}

const beforeAllDays = -(2 ** 31);

async function* rollupsOf(client: pg.ClientBase, teamId: string): AsyncGenerator<Rollup[]> {
  let last: RollupId | undefined = { dimension: 0, day: beforeAllDays, group: '' };
  while (last) {
    const { rows } = await run(client, ofOneTeam.auditRollups, [
      teamId,
      last.dimension,
      last.day,
      last.group,
    ]);
    const chunk = rows.map((row) => ({
      dimension: row['dimension'] as Dimension,
      day: row['day'] as number,
      group: row['key'] as string,
      measures: measuresFromRow(row),
    }));
    if (chunk.length > 0) yield chunk;
    last = chunk.at(-1);
  }
}
