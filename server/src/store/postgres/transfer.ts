import { counted } from '../../core/counted.ts';
import type pg from 'pg';
import { uuidBytes } from '../../core/uuid.ts';
import { limits } from '../../limits.ts';
import { requestFromRow } from '../idempotency.ts';
import type { TeamCounter } from '../sequencer.ts';
import { packedFromRow } from '../trace-rows.ts';
import type { PackedTrace, Transfer } from '../transfer.ts';
import { sumOverNodes } from './cluster.ts';
import { ask, inTransaction, run, serverName } from './connection.ts';
import type { Pools } from './connection.ts';
import { counterFromRow } from './marks-rows.ts';
import type { WrittenTeam } from './roller-messages.ts';
import { ofOneTeam } from './statements.ts';
import { readRecordTypes, TraceRecords } from './trace-records.ts';

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
        await insertPacked(client, teamId, traces);
        const { seq, createdAtUs } = traces.at(-1) ?? first;
        await run(client, ofOneTeam.moveCounter, [teamId, seq, createdAtUs]);
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

/** Waits until no other transaction of the team is in progress. If the team has no traces yet, its sequence starts at `firstSeq`. */
export async function lockTeam(
  client: pg.ClientBase,
  teamId: string,
  firstSeq = 1,
): Promise<TeamCounter> {
  const [found] = (await run(client, ofOneTeam.lockCounter, [teamId])).rows;
  if (found) return counterFromRow(found);
  // The team's first trace. If another transaction is adding the row too, this waits for it.
  await run(client, ofOneTeam.addCounter, [teamId, firstSeq]);
  return lockTeam(client, teamId);
}

/** Inserts traces of one team, with their numbers, and their payloads. */
export async function insertPacked(
  client: pg.ClientBase,
  teamId: string,
  traces: readonly PackedTrace[],
): Promise<void> {
  const team = uuidBytes(teamId);
  const records = new TraceRecords(await readRecordTypes(client));
  for (const trace of traces) {
    records.add(team, { ...trace, idBytes: uuidBytes(trace.id) }, trace, trace);
  }
  const [rows, payloads] = records.toBuffers();
  await run(client, ofOneTeam.insertTraces, [teamId, rows]);
  await run(client, ofOneTeam.insertPayloads, [teamId, payloads]);
}

/** Every server has at least one open connection; tools use another application name. */
const countServers = `
  select count(*) from pg_stat_activity
  where datname = current_database() and application_name = '${serverName}'`;
