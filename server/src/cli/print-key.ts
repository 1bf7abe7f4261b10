import type { NewKey, Team } from '../store/teams-and-keys.ts';
import type { Call } from './command.ts';
import { optionalTime } from './table.ts';

/** The one time a key is shown. */
export function printKey(
  call: Call,
  key: string,
  { id, scope, name, expiresAtUs }: NewKey,
  team: Pick<Team, 'id' | 'name'>,
): void {
  const expires = optionalTime(expiresAtUs);
  call.print({ key, key_id: id, team_id: team.id, team: team.name, scope, name, expires }, key);
  call.hint(
    `API key ${id} for the team "${team.name}": scope ${scope}, ` +
      `${expires === null ? 'does not expire' : `valid until ${expires}`}. It is not shown again.`,
  );
}
