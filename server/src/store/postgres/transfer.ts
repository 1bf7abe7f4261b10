import { counted } from '../../core/counted.ts';
import type pg from 'pg';
import { limits } from '../../limits.ts';
import { requestFromRow } from '../idempotency.ts';
import { TeamBatch } from '../team-batch.ts';
import { packedFromRow } from '../trace-rows.ts';
import type { Transfer } from '../transfer.ts';
import { lockTeam } from './batch-statements.ts';
import { sumOverNodes } from './cluster.ts';
import { ask, inTransaction, run, serverName } from './connection.ts';
import type { Pools } from './connection.ts';
import { counterFromRow } from './marks-rows.ts';
import type { WrittenTeam } from './roller-messages.ts';
import { ofOneTeam } from './statements.ts';
import { TraceColumns } from './trace-columns.ts';

export function openTransfer(
  { reading, writing, begin }: Pools,
  onStored: (teams: readonly WrittenTeam[]) => void,
): Omit<Transfer, 'takeTeam' | 'takeKeys'> {
  return {
    async claim() {
      const connections = await sumOverNodes({ reading }, countServers);
      return connections === 0 ? null : `servers with ${counted(connections, 'connection')}`;
    },

    async counter(teamId) {
      const [row] = await ask(reading, ofOneTeam.readCounter, [teamId]);
      return counterFromRow(row);
    },

    async packedTraces(teamId, fromSeq) {
      const toSeq = fromSeq + limits.moveRowsMax - 1;
      const rows = await ask(reading, ofOneTeam.readPacked, [teamId, fromSeq, toSeq]);
      return rows.map(packedFromRow);
    },

    async storedRequests(teamId, nowUs, after = '') {
      const rows = await ask(reading, ofOneTeam.readRequests, [teamId, nowUs, after]);
      return rows.map(requestFromRow);
    },

    async takeTraces(teamId, traces) {
      const [first] = traces;
      if (!first) return { kind: 'taken' };
      const lastSeq = await inTransaction(writing, begin, async (client) => {
        const counter = await lockTeam(client, teamId, first.seq);
        if (first.seq !== counter.lastSeq + 1) return counter.lastSeq;
        const columns = new TraceColumns();
        const batch = new TeamBatch(teamId, counter, (...row) => columns.add(teamId, ...row));
        batch.take(traces);
        await insertColumns(client, teamId, columns);
        const { lastSeq: newSeq, lastUs } = batch.counter;
        await run(client, ofOneTeam.moveCounter, [teamId, newSeq, lastUs]);
        return null;
      });
      if (lastSeq !== null) return { kind: 'not-next', lastSeq };
      onStored([{ teamId, fromSeq: first.seq - 1, lastSeq: first.seq + traces.length - 1 }]);
      return { kind: 'taken' };
    },

    async takeRequests(teamId, requests) {
      if (requests.length === 0) return;
      await inTransaction(writing, begin, (client) =>
        run(client, ofOneTeam.takeRequests, [
          teamId,
          requests.map(({ keyHash }) => keyHash),
          requests.map(({ bodyHash }) => bodyHash),
          requests.map(({ firstSeq }) => firstSeq),
          requests.map(({ count }) => count),
          requests.map(({ rejected }) => rejected),
          requests.map(({ expiresAtUs }) => expiresAtUs),
        ]),
      );
    },
  };
}

/** Inserts traces of one team and their payloads. */
async function insertColumns(
  client: pg.ClientBase,
  teamId: string,
  columns: TraceColumns,
): Promise<void> {
  await run(client, ofOneTeam.insertTraces, [teamId, ...columns.traceValues()]);
  if (columns.payloadCount === 0) return;
  await run(client, ofOneTeam.insertPayloads, [teamId, ...columns.payloadValues()]);
}

/** Every server has at least one open connection; tools use another application name. */
const countServers = `
  select count(*) from pg_stat_activity
  where datname = current_database() and application_name = '${serverName}'`;
