import { allows } from '../core/api-key.ts';
import { formatTimestamp } from '../core/clock.ts';
import { OperatorError } from '../errors.ts';
import { limits } from '../limits.ts';
import { makeSignInCode } from '../store/sign-in.ts';
import type { Store } from '../store/store.ts';
import type { KeyRecord } from '../store/teams-and-keys.ts';
import { storeFlags } from './command.ts';
import type { Call, Command } from './command.ts';
import { keyState } from './keys-list.ts';
import { addressFlags, serverAddress } from './server-address.ts';
import { codeLifeInWords, signInLink } from './sign-in-link.ts';
import { flagWords } from './shell-words.ts';
import { chosenTeam, keyWithId, withStore } from './with-store.ts';

export const signIn: Command = {
  name: 'sign-in',
  summary: 'Print a one-time link that signs you in to the dashboard',
  flags: {
    team: { help: 'sign in to this team, with its newest valid key that can read' },
    'key-id': { help: 'sign in with this key instead' },
    ...storeFlags,
    ...addressFlags,
  },
  more:
    `The link ${codeLifeInWords}. It contains a one-time code, not a key, and starts a session that can only read.\n` +
    `The session lasts at most ${limits.sessionLifeMs / 3_600_000} hours, and ends when its API key expires or is revoked. With --team, a key with the scope "read" is\n` +
    'preferred over one with the scope "full".',
  examples: ['sign-in --team search --url https://tally.example'],
  run(call) {
    const url = serverAddress(call);
    return withStore(async (store, clock) => {
      const nowUs = clock();
      const { id, teamId, teamName } = await chooseKey(store, call, nowUs);
      const { code, record } = makeSignInCode(id, nowUs);
      await store.addSignInCode(record, nowUs);
      const link = signInLink(url, code);
      const expires = formatTimestamp(record.expiresAtUs);
      call.print({ link, code, expires, team_id: teamId, team: teamName, key_id: id }, link);
      call.hint(
        `The link signs you in to the team "${teamName}", ${codeLifeInWords}. Its session uses the key ${id}.`,
      );
    })(call);
  },
};

async function chooseKey(store: Store, call: Call, nowUs: number): Promise<KeyRecord> {
  const keyId = call.flags['key-id'];
  if ((call.flags['team'] === undefined) === (keyId === undefined)) {
    throw new OperatorError('Specify either --team or --key-id.');
  }
  const team = await chosenTeam(call, store);
  if (team === null) return usableKey(await keyWithId(call, store, keyId ?? ''), nowUs);
  const key = await sessionKey(store, team.id, nowUs);
  if (key) return key;
  const create = ['keys', 'create', ...flagWords('team', team.name), '--scope', 'read'];
  throw new OperatorError(
    `The team "${team.name}" has no valid key with the scope "read" or "full". ` +
      `To create one, run: ${call.line(...create)}`,
  );
}

/** The key that a new session of the team belongs to: the newest that can only read, or else the newest that can read. */
export async function sessionKey(
  store: Store,
  teamId: string,
  nowUs: number,
): Promise<KeyRecord | null> {
  const usable = (await store.keys(teamId))
    .filter((key) => keyState(key, nowUs) === 'live' && allows(key.scope, 'read'))
    .toReversed();
  return usable.find(({ scope }) => scope === 'read') ?? usable[0] ?? null;
}

function usableKey(key: KeyRecord, nowUs: number): KeyRecord {
  const state = keyState(key, nowUs);
  if (state === 'expired') throw new OperatorError(`The key ${key.id} has expired.`);
  if (state === 'revoked') throw new OperatorError(`The key ${key.id} was revoked.`);
  if (allows(key.scope, 'read')) return key;
  throw new OperatorError(
    `The key ${key.id} has the scope "${key.scope}", which does not allow reading.`,
  );
}
