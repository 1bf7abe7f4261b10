import type pg from 'pg';
import { parseUuid, uuidV7 } from '../../core/uuid.ts';
import { keyFromRow, newKeyValues, teamFromRow } from '../key-rows.ts';
import { defaultTimeZone, firstGeneration } from '../team-marks.ts';
import type { HashedKey, KeyDirectory, Team, TeamDirectory } from '../teams-and-keys.ts';
import { ask, inTransaction, run } from './connection.ts';
import type { Pools } from './connection.ts';
import { openKeyFinder } from './key-finder.ts';
import { ofMarks } from './rollup-statements.ts';
import { ofSmallTables, overAllTeams } from './statements.ts';

/** The tables of teams and API keys: read to authenticate requests, written mostly by commands. */
export function openTeamsAndKeys({
  reading,
  writing,
  begin,
}: Pools): TeamDirectory & Omit<KeyDirectory, 'noteKeyUse'> {
  async function readTeam(text: string, value: string): Promise<Team | null> {
    const [row] = await ask(reading, text, [value]);
    return row ? teamFromRow(row) : null;
  }

  async function readKey(text: string, value: string): Promise<HashedKey | null> {
    const [row] = await ask(reading, text, [value]);
    return row ? keyFromRow(row) : null;
  }

  return {
    async ensureTeam(name, nowUs, timeZone) {
      const found = await readTeam(ofSmallTables.readTeamByName, name);
      if (found) return { team: found, created: false };
      const team = { id: uuidV7(nowUs), name, createdAtUs: nowUs };
      const created = await inTransaction(writing, begin, (client) =>
        addTeam(client, team, timeZone),
      );
      if (created) return { team, created };
      // Another process has created it; the insert waited for that commit.
      const theirs = await readTeam(ofSmallTables.readTeamByName, name);
      if (!theirs) throw new Error(`the team ${team.id} was neither created nor found`);
      return { team: theirs, created };
    },
    async findTeam(nameOrId) {
      const byName = await readTeam(ofSmallTables.readTeamByName, nameOrId);
      const id = parseUuid(nameOrId);
      return byName ?? (id === null ? null : readTeam(ofSmallTables.readTeamById, id));
    },
    async teams(nowUs) {
      const rows = await ask(reading, overAllTeams.readTeams, [nowUs]);
      return rows.map((row) => ({
        ...teamFromRow(row),
        traces: Number(row['traces']),
        liveKeys: Number(row['live_keys']),
      }));
    },
    async createKey(teamId, key) {
      await inTransaction(writing, begin, (client) =>
        run(client, ofSmallTables.addKey, newKeyValues(teamId, key)),
      );
    },
    rotateKey(oldKeyId, key, oldExpiresAtUs) {
      return inTransaction(writing, begin, async (client) => {
        const { rows } = await run(client, ofSmallTables.replaceKey, [
          oldKeyId,
          oldExpiresAtUs,
          key.id,
        ]);
        const [replaced] = rows;
        if (!replaced) return false;
        await run(client, ofSmallTables.addKey, newKeyValues(replaced['team_id'] as string, key));
        return true;
      });
    },
    revokeKey(keyId, nowUs) {
      return inTransaction(writing, begin, async (client) => {
        const { rowCount } = await run(client, ofSmallTables.revokeKey, [keyId, nowUs]);
        return rowCount === 1;
      });
    },
    findKey: (keyId) => readKey(ofSmallTables.readKeyById, keyId),
    findKeyByHash: openKeyFinder({ reading }),
    async keys(teamId) {
      const rows = await (teamId === null
        ? ask(reading, ofSmallTables.readKeys, [])
        : ask(reading, ofSmallTables.readKeysOfTeam, [teamId]));
      return rows.map(keyFromRow);
    },
  };
}

/** Adds a team with its marks. False if the name is taken. */
export async function addTeam(
  client: pg.ClientBase,
  { id, name, createdAtUs }: Team,
  timeZone: string = defaultTimeZone,
): Promise<boolean> {
  const { rowCount } = await run(client, ofSmallTables.addTeam, [id, name, createdAtUs]);
  if (rowCount !== 1) return false;
  await run(client, ofMarks.addMarks, [id, firstGeneration, timeZone, true, 0]);
  return true;
}
