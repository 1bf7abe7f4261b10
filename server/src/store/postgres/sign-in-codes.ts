import { makeSessionSecret, removableEndUs, sessionSecretName } from '../sign-in.ts';
import type { SignInDirectory } from '../sign-in.ts';
import { ask, inTransaction, run } from './connection.ts';
import type { Pools, Row, Values } from './connection.ts';
import { ofSmallTables } from './statements.ts';

export function openSignInCodes({ reading, writing, begin }: Pools): SignInDirectory {
  async function readSecret(): Promise<Uint8Array | undefined> {
    const [row] = await ask(reading, ofSmallTables.readSecret, [sessionSecretName]);
    return row?.['value'] as Uint8Array | undefined;
  }

  /** Runs one statement in its own transaction. */
  async function write(text: string, values: Values): Promise<readonly Row[]> {
    const { rows } = await inTransaction(writing, begin, (client) => run(client, text, values));
    return rows;
  }

  return {
    async sessionSecret() {
      const known = await readSecret();
      if (known) return known;
      // If several servers start at once, the first insert wins, and all read the same value back.
      await write(ofSmallTables.addSecret, [sessionSecretName, makeSessionSecret()]);
      const created = await readSecret();
      if (!created) throw new Error('the session secret was neither found nor created');
      return created;
    },
    async addSignInCode({ hash, keyId, expiresAtUs }, nowUs) {
      await inTransaction(writing, begin, async (client) => {
        await run(client, ofSmallTables.removeExpiredCodes, [nowUs]);
        await run(client, ofSmallTables.addSignInCode, [hash, keyId, expiresAtUs]);
      });
    },
    async findSignInCode(hash, nowUs) {
      return keyIdOf(await ask(reading, ofSmallTables.findSignInCode, [hash, nowUs]));
    },
    async takeSignInCode(hash, nowUs) {
      return keyIdOf(await write(ofSmallTables.takeSignInCode, [hash, nowUs]));
    },
    async endSession({ id, endsAtUs }, nowUs) {
      await inTransaction(writing, begin, async (client) => {
        await run(client, ofSmallTables.removeEndedSessions, [removableEndUs(nowUs)]);
        await run(client, ofSmallTables.addEndedSession, [endsAtUs, id]);
      });
    },
    async isSessionEnded({ id, endsAtUs }) {
      const rows = await ask(reading, ofSmallTables.findEndedSession, [endsAtUs, id]);
      return rows.length > 0;
    },
  };
}

function keyIdOf([row]: readonly Row[]): string | null {
  return (row?.['key_id'] ?? null) as string | null;
}
