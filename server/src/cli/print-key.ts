import type { NewKey } from '../store/teams-and-keys.ts';
import { formatTimestamp } from '../core/clock.ts';
import type { Call } from './command.ts';

/** The one time a key is shown. */
export function printKey(
  call: Call,
  key: string,
  record: NewKey,
  team: { id: string; name: string },
): void {
  const expires = record.expiresAtUs === null ? null : formatTimestamp(record.expiresAtUs);
  if (call.flags['json']) {
    const { id, scope, name } = record;
    call.print(
      JSON.stringify({ key, key_id: id, team_id: team.id, team: team.name, scope, name, expires }),
    );
    return;
  }
  call.print(key);
  call.note(
    `API key ${record.id} of the team "${team.name}": scope ${record.scope}, ` +
      `${expires === null ? 'does not expire' : `valid until ${expires}`}. It is not shown again.`,
  );
}
