import { hashSignInCode } from '../core/sign-in-code.ts';
import { limits } from '../limits.ts';
import { makeSignInCode } from '../store/sign-in.ts';
import type { Store } from '../store/store.ts';
import { makeKey } from '../store/teams-and-keys.ts';
import type { Team } from '../store/teams-and-keys.ts';
import type { Call } from './command.ts';
import { addressWords, listenWords } from './server-address.ts';
import { flagWords } from './shell-words.ts';
import { sessionKey } from './sign-in.ts';
import { codeLifeInWords, signInLink } from './sign-in-link.ts';

/** A one-time link to the team's dashboard, or null if no server on this database responds at the configured address. */
export async function demoLink(
  store: Store,
  team: Team,
  url: string,
  nowUs: number,
): Promise<string | null> {
  const { code, record } = makeSignInCode(await keyForLink(store, team, nowUs), nowUs);
  await store.addSignInCode(record, nowUs);
  if (await isServedAt(url, code)) return signInLink(url, code);
  // Whatever responded at this address has seen the code.
  await store.takeSignInCode(hashSignInCode(code), nowUs);
  return null;
}

/** What to do next, in words. */
export function demoHint(call: Call, team: Team, url: string, link: string | null): string {
  if (link !== null) {
    return `To see them, open this link. It signs you in to the dashboard, ${codeLifeInWords}:\n\n  ${link}\n`;
  }
  return (
    `No server on this database responds at ${url}. To see the traces, start one:\n\n` +
    `  ${call.line('serve', ...listenWords(call))}\n\n` +
    'and print a link that signs you in to the dashboard:\n\n' +
    `  ${call.line('sign-in', ...flagWords('team', team.name), ...addressWords(call))}\n`
  );
}

/** A session belongs to a key. A team without one gets a key that only reads and that is never shown. */
async function keyForLink(store: Store, team: Team, nowUs: number): Promise<string> {
  const key = await sessionKey(store, team.id, nowUs);
  if (key !== null) return key.id;
  const { record } = makeKey({ name: 'demo dashboard', scope: 'read', nowUs, expiresAtUs: null });
  await store.createKey(team.id, record);
  return record.id;
}

/** Only a server on the same database knows the code. Looking at a code does not use it up. */
async function isServedAt(url: string, code: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/session/preview`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code }),
      redirect: 'error',
      signal: AbortSignal.timeout(limits.serverProbeMsMax),
    });
    await response.body?.cancel();
    return response.status === 200;
  } catch {
    return false;
  }
}
