import { readDatabase } from '../config.ts';
import { isWellFormedKey } from '../core/api-key.ts';
import { openClock } from '../core/clock.ts';
import type { Clock } from '../core/clock.ts';
import { parseUuid } from '../core/uuid.ts';
import { OperatorError } from '../errors.ts';
import { limits } from '../limits.ts';
import { openStore } from '../store/open-store.ts';
import type { Database } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import type { KeyRecord, Team } from '../store/teams-and-keys.ts';
import type { Call, Command } from './command.ts';

const systemClock = { kind: 'system' } as const;

type Work = (store: Store, clock: Clock, call: Call) => Promise<boolean | void>;

/** Runs a command on the store that its flags name, which must exist. A server may run on it. */
export function withStore(work: Work, options = { mustExist: true }): Command['run'] {
  return async (call) => {
    await using store = await openTool(readDatabase(call.flags), options);
    return await work(store, openClock(systemClock), call);
  };
}

/** The same, but creates the store if it does not exist. */
export function withNewStore(work: Work): Command['run'] {
  return withStore(work, { mustExist: false });
}

/** Opens a store beside a server that may be running. `await using` closes it whatever happens. */
export async function openTool(
  database: Database,
  options: { mustExist: boolean },
): Promise<Store & AsyncDisposable> {
  const store = await openStore(database, {
    ...options,
    clock: systemClock,
    role: 'tool',
  });
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}

/** The team that --team names, or null if the flag is not given. */
export async function chosenTeam(call: Call, store: Store): Promise<Team | null> {
  const nameOrId = call.flags['team'];
  return nameOrId === undefined ? null : teamNamed(call, store, nameOrId);
}

/** The team with this name or id. */
export async function teamNamed(call: Call, store: Store, nameOrId: string): Promise<Team> {
  const team = await store.findTeam(nameOrId);
  if (team) return team;
  throw new OperatorError(
    `There is no team "${nameOrId}". To list the teams, run: ${call.line('teams', 'list')}`,
  );
}

export async function keyWithId(call: Call, store: Store, keyId: string): Promise<KeyRecord> {
  const key = await store.findKey(keyId);
  if (key) return key;
  const list = `To list the ids of the keys, run: ${call.line('keys', 'list')}`;
  // It may be a valid key that was pasted in place of its id, and must not be printed.
  if (isWellFormedKey(keyId)) {
    throw new OperatorError(`Specify the id of the key, not the key itself. ${list}`);
  }
  throw new OperatorError(`There is no key "${keyId}". ${list}`);
}

/** A name that a person chose. It is shown in tables, so it must not contain control characters. */
export function checkName(flag: string, name: string): string {
  const chars = Array.from(name).length;
  if (chars >= 1 && chars <= limits.nameCharsMax && !/\p{Cc}/u.test(name))
    return name.toWellFormed();
  throw new OperatorError(
    `${flag} must have 1 to ${limits.nameCharsMax} characters, and no control characters.`,
  );
}

/** A team's name. It must not look like an id, or commands that take either could pick the wrong team. */
export function checkTeamName(flag: string, name: string): string {
  if (parseUuid(name) === null) return checkName(flag, name);
  throw new OperatorError(`${flag} must not look like an id (a UUID).`);
}
