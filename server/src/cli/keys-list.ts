import { formatTimestamp } from '../core/clock.ts';
import type { KeyRecord } from '../store/teams-and-keys.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { optionalTime, printList } from './table.ts';
import { chosenTeam, withStore } from './with-store.ts';

export const keysList: Command = {
  name: 'keys list',
  summary: 'List API keys with their ids and prefixes',
  flags: { team: { help: 'only the keys of this team' }, ...storeFlags },
  run: withStore(async (store, clock, call) => {
    const team = await chosenTeam(call, store);
    printList(call, await store.keys(team?.id ?? null), [
      ['KEY ID', 'key_id', ({ id }) => id],
      ['TEAM', 'team', ({ teamName }) => teamName],
      ['PREFIX', 'prefix', ({ prefix }) => prefix],
      ['NAME', 'name', ({ name }) => name],
      ['SCOPE', 'scope', ({ scope }) => scope],
      ['STATE', 'state', (key) => keyState(key, clock())],
      ['CREATED', 'created', ({ createdAtUs }) => formatTimestamp(createdAtUs)],
      ['EXPIRES', 'expires', ({ expiresAtUs }) => optionalTime(expiresAtUs)],
      ['LAST USED', 'last_used', ({ lastUsedAtUs }) => optionalTime(lastUsedAtUs)],
    ]);
  }),
};

export function keyState(
  { revokedAtUs, expiresAtUs }: KeyRecord,
  nowUs: number,
): 'live' | 'expired' | 'revoked' {
  if (revokedAtUs !== null) return 'revoked';
  return expiresAtUs !== null && expiresAtUs <= nowUs ? 'expired' : 'live';
}
