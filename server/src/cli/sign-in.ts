import { settingFlags } from '../config.ts';
import { allows } from '../core/api-key.ts';
import { formatTimestamp } from '../core/clock.ts';
import { OperatorError } from '../errors.ts';
import { limits } from '../limits.ts';
import { makeSignInCode } from '../store/sign-in.ts';
import type { Store } from '../store/store.ts';
import type { KeyRecord } from '../store/teams-and-keys.ts';
import { jsonFlag, textFlag } from './command.ts';
import type { Call, Command } from './command.ts';
import { keyState } from './keys-list.ts';
import { addressFlags, serverAddress } from './server-address.ts';
import { codeLifeInWords, signInLink } from './sign-in-link.ts';
import { flagWords } from './shell-words.ts';
import { keyWithId, teamNamed, withStore } from './with-store.ts';

export const signIn: Command = {
  name: 'sign-in',
  summary: 'Print a one-time link that opens the dashboard signed in',
  words: [],
  flags: {
    team: { type: 'string', help: 'sign in to this team, with its newest live key that can read' },
    'key-id': { type: 'string', help: 'sign in with this key instead' },
    ...jsonFlag,
    ...settingFlags('database'),
    ...addressFlags,
  },
  more:
    `The link ${codeLifeInWords}, and does not contain a key. It starts a session that can only read. The session lasts at most\n` +
    `${limits.sessionLifeMs / 3_600_000} hours and ends when its API key expires or is revoked. With --team, a key with the scope read is preferred to one with the\n` +
    'scope full.',
  examples: ['sign-in --team search --url https://tally.example'],
  async run(call) {
    const url = serverAddress(call);
    return withStore(call, async (store, clock) => {
      const nowUs = clock();
      const key = await chooseKey(store, call, nowUs);
      const { code, record } = makeSignInCode(key.id, nowUs);
      await store.addSignInCode(record, nowUs);
      printLink(call, { link: signInLink(url, code), code, expiresAtUs: record.expiresAtUs, key });
      return 0;
    });
  },
};

interface SignInProduct {
  link: string;
  code: string;
  expiresAtUs: number;
  key: KeyRecord;
}

function printLink(call: Call, { link, code, expiresAtUs, key }: SignInProduct): void {
  const expires = formatTimestamp(expiresAtUs);
  if (call.flags['json']) {
    const product = { link, code, expires, team_id: key.teamId, team: key.teamName };
    call.print(JSON.stringify({ ...product, key_id: key.id }));
    return;
  }
  call.print(link);
  call.note(
    `The link signs in to the team "${key.teamName}" and ${codeLifeInWords}. Its session uses the key ${key.id}.`,
  );
}

async function chooseKey(store: Store, call: Call, nowUs: number): Promise<KeyRecord> {
  const teamName = textFlag(call, 'team');
  const keyId = textFlag(call, 'key-id');
  if ((teamName === null) === (keyId === null)) {
    throw new OperatorError('Give either --team or --key-id.');
  }
  if (keyId !== null) return namedKey(call, store, keyId, nowUs);
  const team = await teamNamed(call, store, teamName ?? '');
  const key = await sessionKey(store, team.id, nowUs);
  if (key) return key;
  const create = ['keys', 'create', ...flagWords('team', team.name), '--scope', 'read'];
  throw new OperatorError(
    `The team "${team.name}" has no live key with the scope read or full. ` +
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

async function namedKey(
  call: Call,
  store: Store,
  keyId: string,
  nowUs: number,
): Promise<KeyRecord> {
  const key = await keyWithId(call, store, keyId);
  const state = keyState(key, nowUs);
  if (state !== 'live') throw new OperatorError(`The key ${keyId} is not live: it is ${state}.`);
  if (allows(key.scope, 'read')) return key;
  throw new OperatorError(
    `The key ${keyId} has the scope "${key.scope}", which does not allow reading.`,
  );
}
