import { RollupBatch } from '../../core/rollup.ts';
import { limits } from '../../limits.ts';
import { nameIsTaken } from '../mover.ts';
import type { MovedKey, MovedRequest, Mover } from '../mover.ts';
import { payloadsOfRow } from '../payload.ts';
import { sumOverNodes } from './cluster.ts';
import { ask, inTransaction, run, serverName } from './connection.ts';
import type { Pools, Row, Values } from './connection.ts';
import { newKeyValues } from './directory.ts';
import { auditTraceFromRow, keyFromRow, numberOf } from './rows.ts';
import { ofOneTeam, ofSmallTables } from './statements.ts';
import { rollupColumns } from './team-batch.ts';
import { lockTeam } from './team-transaction.ts';
import { TraceColumns } from './trace-columns.ts';

export function openMover({ reading, writing, begin }: Pools): Mover {
  return {
    async claim() {
      const connections = await sumOverNodes({ reading }, countServers);
      return connections === 0 ? null : `servers with ${connections} connections`;
    },

    async place(teamId) {
      const [row] = await ask(reading, ofOneTeam.readCounter, [teamId]);
      return {
        firstSeq: numberOf(row?.['first_seq'] ?? 1),
        lastSeq: numberOf(row?.['last_seq'] ?? 0),
      };
    },

    async packedTraces(teamId, fromSeq) {
      const toSeq = fromSeq + limits.moveRowsMax - 1;
      const rows = await ask(reading, ofOneTeam.readPacked, [teamId, fromSeq, toSeq]);
      return rows.map((row) => ({ ...auditTraceFromRow(row), ...payloadsOfRow(row) }));
    },

    async knownRequests(teamId, nowUs, after = '') {
      const rows = await ask(reading, ofOneTeam.readRequests, [teamId, nowUs, after]);
      return rows.map(requestFromRow);
    },

    async keysWithHashes() {
      const rows = await ask(reading, ofSmallTables.readKeys, []);
      return rows.map((row) => ({ ...keyFromRow(row), hash: row['hash'] as string }));
    },

    async takeTeam({ id, name, createdAtUs }) {
      const [found] = await ask(reading, ofSmallTables.readTeamById, [id]);
      if (found) return;
      await inTransaction(writing, begin, async (client) => {
        const { rowCount } = await run(client, ofSmallTables.addTeam, [id, name, createdAtUs]);
        if (rowCount === 1) return;
        // Somebody else may just have added the same one.
        const there = await run(client, ofSmallTables.readTeamById, [id]);
        if (there.rowCount !== 1) throw nameIsTaken(name);
      });
    },

    async takeTraces(teamId, traces) {
      const [first, last] = [traces[0], traces.at(-1)];
      if (!first || !last) return { kind: 'taken' };
      return inTransaction(writing, begin, async (client) => {
        const { lastSeq } = await lockTeam(client, teamId, first.seq);
        if (first.seq !== lastSeq + 1) return { kind: 'elsewhere', lastSeq };
        const columns = new TraceColumns();
        const rollups = new RollupBatch();
        for (const trace of traces) {
          columns.add(trace.seq, trace, trace, trace);
          rollups.add(trace, trace.createdAtUs);
        }
        await run(client, ofOneTeam.insertTraces, [teamId, ...columns.values()]);
        await run(client, ofOneTeam.addRollups, [teamId, ...rollupColumns(rollups.deltas())]);
        await run(client, ofOneTeam.moveCounter, [teamId, last.seq, last.createdAtUs]);
        return { kind: 'taken' };
      });
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

    async takeKeys(keys) {
      await inTransaction(writing, begin, async (client) => {
        for (const key of keys) await run(client, ofSmallTables.takeKey, movedKeyValues(key));
        const used = keys.filter(({ lastUsedAtUs }) => lastUsedAtUs !== null);
        await run(client, ofSmallTables.noteKeyUses, [
          used.map(({ id }) => id),
          used.map(({ lastUsedAtUs }) => lastUsedAtUs),
        ]);
      });
    },
  };
}

/** Servers keep at least one connection; tools have another name. */
const countServers = `
  select count(*) from pg_stat_activity
  where datname = current_database() and application_name = '${serverName}'`;

function movedKeyValues(key: MovedKey): Values {
  return [...newKeyValues(key.teamId, key), key.revokedAtUs, key.replacedBy];
}

function requestFromRow(row: Row): MovedRequest {
  return {
    keyHash: row['key_hash'] as string,
    bodyHash: row['body_hash'] as string,
    rejected: row['rejected'] as string | null,
    firstSeq: numberOf(row['first_seq']),
    count: row['count'] as number,
    expiresAtUs: numberOf(row['expires_at_us']),
  };
}
