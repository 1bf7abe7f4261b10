import { parseUuid, uuidV7 } from '../core/uuid.ts';
import { statement } from './sql.ts';
import type { Dialect, Row, Sql, Steps } from './sql.ts';
import { defaultTimeZone } from './team-marks.ts';
import type { Team, TeamDirectory } from './teams-and-keys.ts';
import { nameIsTaken } from './transfer.ts';
import type { Transfer } from './transfer.ts';

const columns = 'id, name, created_at_us';
const readByName = `select ${columns} from teams where name = ?1`;
const readById = `select ${columns} from teams where id = ?1`;

/** All teams with the numbers of their traces and live keys. Used by commands, never by a request. */
export function readTeams({ counterOfTeam }: Dialect): string {
  return `
    select t.id, t.name, t.created_at_us, coalesce(c.last_seq - c.first_seq + 1, 0) as traces,
      (select count(*) from api_keys k where k.team_id = t.id and k.revoked_at_us is null
        and (k.expires_at_us is null or k.expires_at_us > ?1)) as live_keys
    from teams t left join team_counters c on ${counterOfTeam} order by t.name`;
}

export function openTeams(sql: Sql): TeamDirectory & Pick<Transfer, 'takeTeam'> {
  async function read(text: string, value: string): Promise<Team | null> {
    const [row] = await sql.all(text, [value]);
    return row ? teamFromRow(row) : null;
  }

  /** Adds a team with its marks. False if its name or id is taken. */
  function* addTeam({ id, name, createdAtUs }: Team, timeZone = defaultTimeZone): Steps<boolean> {
    const insert = `insert into teams (${columns}) values (?1, ?2, ?3) on conflict do nothing`;
    const { changes } = yield statement(insert, [id, name, createdAtUs]);
    if (changes !== 1) return false;
    yield sql.firstMarks(id, timeZone);
    return true;
  }

  return {
    async ensureTeam(name, nowUs, timeZone) {
      const found = await read(readByName, name);
      if (found) return { team: found, created: false };
      const team = { id: uuidV7(nowUs), name, createdAtUs: nowUs };
      return sql.transaction(function* () {
        if (yield* addTeam(team, timeZone)) return { team, created: true };
        // Another process has created it in the meantime.
        const [theirs] = (yield statement(readByName, [name])).rows;
        if (!theirs) throw new Error(`the team ${team.id} was neither created nor found`);
        return { team: teamFromRow(theirs), created: false };
      });
    },
    async findTeam(nameOrId) {
      const byName = await read(readByName, nameOrId);
      const id = parseUuid(nameOrId);
      return byName ?? (id === null ? null : read(readById, id));
    },
    async teams(nowUs) {
      const rows = await sql.all(readTeams(sql), [nowUs]);
      return rows.map((row) => ({
        ...teamFromRow(row),
        traces: Number(row['traces']),
        liveKeys: Number(row['live_keys']),
      }));
    },
    takeTeam: (team, timeZone) =>
      sql.transaction(function* () {
        if (yield* addTeam(team, timeZone)) return;
        const { rows } = yield statement(readById, [team.id]);
        if (rows.length === 0) throw nameIsTaken(team.name);
      }),
  };
}

function teamFromRow(row: Row): Team {
  return {
    id: row['id'] as string,
    name: row['name'] as string,
    createdAtUs: Number(row['created_at_us']),
  };
}
