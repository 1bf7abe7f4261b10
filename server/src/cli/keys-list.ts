import { settingFlags } from '../config.ts';
import { formatTimestamp } from '../core/clock.ts';
import type { KeyRecord } from '../store/teams-and-keys.ts';
import { jsonFlag, textFlag } from './command.ts';
import type { Command } from './command.ts';
import { formatTable } from './table.ts';
import { teamNamed, withStore } from './with-store.ts';

export const keysList: Command = {
  name: 'keys list',
  summary: 'List API keys by id and prefix',
  words: [],
  flags: {
    team: { type: 'string', help: 'only the keys of this team' },
    ...jsonFlag,
    ...settingFlags('database'),
  },
  run: (call) =>
    withStore(call, async (store, clock) => {
      const teamName = textFlag(call, 'team');
      const team = teamName === null ? null : await teamNamed(call, store, teamName);
      const keys = (await store.keys(team?.id ?? null)).map((key) => shown(key, clock()));
      call.print(
        call.flags['json']
          ? JSON.stringify(keys)
          : formatTable(
              [
                'KEY ID',
                'TEAM',
                'PREFIX',
                'NAME',
                'SCOPE',
                'STATE',
                'CREATED',
                'EXPIRES',
                'LAST USED',
              ],
              keys.map((key) => Object.values(key).map((value) => value ?? '-')),
            ),
      );
      return 0;
    }),
};

function shown(key: KeyRecord, nowUs: number) {
  return {
    key_id: key.id,
    team: key.teamName,
    prefix: key.prefix,
    name: key.name,
    scope: key.scope,
    state: keyState(key, nowUs),
    created: formatTimestamp(key.createdAtUs),
    expires: optionalTime(key.expiresAtUs),
    last_used: optionalTime(key.lastUsedAtUs),
  };
}

export function keyState(
  { revokedAtUs, expiresAtUs }: KeyRecord,
  nowUs: number,
): 'live' | 'expired' | 'revoked' {
  if (revokedAtUs !== null) return 'revoked';
  return expiresAtUs !== null && expiresAtUs <= nowUs ? 'expired' : 'live';
}

function optionalTime(us: number | null): string | null {
  return us === null ? null : formatTimestamp(us);
}
