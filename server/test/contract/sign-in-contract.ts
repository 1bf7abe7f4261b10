import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { hashSignInCode } from '../../src/core/sign-in-code.ts';
import { limits } from '../../src/limits.ts';
import { makeKey } from '../../src/store/teams-and-keys.ts';
import { makeSignInCode } from '../../src/store/sign-in.ts';
import type { Store } from '../../src/store/store.ts';
import { manualClock, us } from '../support/service.ts';
import type { StoreUnderTest } from './store-contract.ts';

const noon = us('2026-11-04T12:00:00Z');

/** What every store keeps for sign-in sessions. */
export function describeSignInContract(name: string, prepare: () => Promise<StoreUnderTest>): void {
  describe(`sign-in sessions in the ${name} store`, () => {
    let stage: StoreUnderTest;
    let store: Store;
    /** A second process on the same store. */
    let beside: Store;

    before(async () => {
      stage = await prepare();
      store = await open('server');
      beside = await open('tool');
    });
    after(async () => {
      await beside.close();
      await store.close();
      await stage.dispose();
    });

    const open = (role: 'server' | 'tool') => stage.open({ clock: manualClock(noon).source, role });

    async function newCode(nowUs = noon): Promise<{ hash: string; keyId: string }> {
      const { team } = await store.ensureTeam('signing in', noon);
      const { record } = makeKey({ name: null, scope: 'read', nowUs: noon, expiresAtUs: null });
      await store.createKey(team.id, record);
      const { record: code } = makeSignInCode(record.id, nowUs);
      await beside.addSignInCode(code, nowUs);
      return { hash: code.hash, keyId: record.id };
    }

    test('the session secret is 32 random bytes, the same in every process and after a restart', async () => {
      const [first, second] = await Promise.all([store.sessionSecret(), beside.sessionSecret()]);
      assert.equal(first.length, 32);
      assert.notDeepEqual(first, Buffer.alloc(32));
      assert.deepEqual(second, first);
      await beside.close();
      beside = await open('tool');
      assert.deepEqual(await beside.sessionSecret(), first);
    });

    test('a sign-in code can be looked at any number of times and taken once', async () => {
      const { hash, keyId } = await newCode();
      assert.equal(await store.findSignInCode(hash, noon), keyId);
      assert.equal(await store.findSignInCode(hash, noon), keyId);
      assert.equal(await store.takeSignInCode(hash, noon), keyId);
      assert.equal(await store.takeSignInCode(hash, noon), null);
      assert.equal(await store.findSignInCode(hash, noon), null);
      assert.equal(await store.takeSignInCode(hashSignInCode('never made'), noon), null);
    });

    test('if many requests in two processes use one code, exactly one gets it', async () => {
      for (let round = 0; round < 5; round++) {
        const { hash, keyId } = await newCode();
        const takers = Array.from({ length: 10 }, (_, i) =>
          (i % 2 === 0 ? store : beside).takeSignInCode(hash, noon),
        );
        const taken = (await Promise.all(takers)).filter((id) => id !== null);
        assert.deepEqual(taken, [keyId]);
      }
    });

    test('a sign-in code ends at its time and is removed when the next one is made', async () => {
      const { hash, keyId } = await newCode();
      const endUs = noon + limits.signInCodeLifeMs * 1000;
      assert.equal(await store.findSignInCode(hash, endUs - 1), keyId);
      assert.equal(await store.findSignInCode(hash, endUs), null);
      assert.equal(await store.takeSignInCode(hash, endUs), null);
      const other = await newCode();
      const next = await newCode(endUs);
      assert.equal(await store.findSignInCode(other.hash, noon), null, 'removed');
      assert.equal(await store.findSignInCode(next.hash, endUs), next.keyId);
    });

    test('a session that was ended is ended in every process, until long after its time', async () => {
      const endsAtUs = noon + limits.sessionLifeMs * 1000;
      const session = { id: 'a'.repeat(22), endsAtUs };
      assert.equal(await store.isSessionEnded(session), false);
      await Promise.all([store.endSession(session, noon), beside.endSession(session, noon)]);
      await store.endSession(session, noon);
      const others = [
        { ...session, id: 'b'.repeat(22) },
        { ...session, endsAtUs: endsAtUs + 1 },
      ];
      for (const process of [store, beside]) {
        assert.equal(await process.isSessionEnded(session), true);
        for (const other of others) assert.equal(await process.isSessionEnded(other), false);
      }
      const laterUs = endsAtUs + limits.sessionLifeMs * 1000;
      const next = { id: 'c'.repeat(22), endsAtUs: laterUs + 1 };
      await store.endSession(next, laterUs - 1);
      assert.equal(await store.isSessionEnded(session), true, 'clocks of servers may differ');
      await store.endSession(next, laterUs);
      assert.equal(await store.isSessionEnded(session), false, 'forgotten');
      assert.equal(await beside.isSessionEnded(next), true);
    });

    test('a session key is found by its id, with its hash', async () => {
      const { team } = await store.ensureTeam('with a key', noon);
      const { record } = makeKey({ name: 'a', scope: 'full', nowUs: noon, expiresAtUs: null });
      await store.createKey(team.id, record);
      assert.equal((await store.findKey(record.id))?.hash, record.hash);
      assert.equal(await store.findKey('key_none'), null);
    });
  });
}
