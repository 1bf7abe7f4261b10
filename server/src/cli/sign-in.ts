import { readServerUrl, settingFlags } from '../config.ts';
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
import { codeLifeInWords, signInLink } from './sign-in-link.ts';
import { teamNamed, withStore } from './with-store.ts';

export const signIn: Command = {
  name: 'sign-in',
  summary: 'Print a one-time link that opens the dashboard signed in',
  words: [],
  flags: {
    team: { type: 'string', help: 'sign in to this team, with its newest live key that may read' },
    'key-id': { type: 'string', help: 'sign in with this key instead' },
    url: {
      type: 'string',
      help: 'where the browser reaches the server, such as https://tally.example; by default as set below',
    },
    ...jsonFlag,
    ...settingFlags('database', 'host', 'port', 'basePath'),
  },
  more:
    `The link ${codeLifeInWords}, and holds no key. The session that it starts may only read, lasts\n` +
    `${limits.sessionLifeMs / 3_600_000} hours at most, and ends when the API key that it belongs to is revoked or expires. A key with the scope read is preferred\n` +
    'to one with the scope full.\n' +
    '\n' +
    '  tracetally sign-in --team search --url https://tally.example',
  async run(call) {
    const url = urlOf(call);
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
    `It signs in to the team "${key.teamName}" and ${codeLifeInWords}. The session belongs to the key ${key.id}.`,
  );
}

async function chooseKey(store: Store, call: Call, nowUs: number): Promise<KeyRecord> {
  const teamName = textFlag(call, 'team');
  const keyId = textFlag(call, 'key-id');
  if ((teamName === null) === (keyId === null)) {
    throw new OperatorError('Give either --team or --key-id: who signs in?');
  }
  if (keyId !== null) return namedKey(store, keyId, nowUs);
  const team = await teamNamed(store, teamName ?? '');
  const usable = (await store.keys(team.id))
    .filter((key) => keyState(key, nowUs) === 'live' && allows(key.scope, 'read'))
    .toReversed();
  const key = usable.find(({ scope }) => scope === 'read') ?? usable[0];
  if (key) return key;
  throw new OperatorError(
    `The team "${team.name}" has no live key with the scope read or full. ` +
      `Create one first: tracetally keys create --team "${team.name}" --scope read`,
  );
}

async function namedKey(store: Store, keyId: string, nowUs: number): Promise<KeyRecord> {
  const key = await store.findKey(keyId);
  if (!key) throw new OperatorError(`There is no key "${keyId}". tracetally keys list shows all.`);
  const state = keyState(key, nowUs);
  if (state !== 'live') throw new OperatorError(`The key ${keyId} is not live: it is ${state}.`);
  if (allows(key.scope, 'read')) return key;
  throw new OperatorError(`The key ${keyId} has the scope "${key.scope}" and may not read.`);
}

function urlOf(call: Call): string {
  const text = textFlag(call, 'url');
  if (text === null) return readServerUrl(call.flags);
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && /^https?:$/.test(url.protocol) && !/[?#@]/.test(text);
  if (isPlain) return url.href.replace(/\/+$/, '');
  throw new OperatorError(
    '--url is not valid: expected an address such as https://tally.example/v1.',
  );
}
