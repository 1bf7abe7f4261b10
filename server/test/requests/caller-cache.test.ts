import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openCallerCache } from '../../src/http/caller-cache.ts';
import { limits } from '../../src/limits.ts';
import { manualTime } from '../support/manual-time.ts';

const stepMs = 20;

/** A cache of names, with the times at which each was looked up. */
function openTestCache(lookUp: (name: string) => Promise<string> = async (name) => name) {
  const lookups = { hit: 0, miss: 0 };
  const lookedUpMs: number[] = [];
  const find = openCallerCache((name) => {
    lookedUpMs.push(performance.now());
    return lookUp(name);
  }, lookups);
  return { lookups, lookedUpMs, use: (name: string) => find(name, (caller) => caller) };
}

describe('cached callers', () => {
  test('a caller in constant use waits for the first lookup only', async (t) => {
    const time = manualTime(t);
    const { use, lookups, lookedUpMs } = openTestCache();
    await use('a');
    while (lookedUpMs.length < 3) {
      assert.equal(use('a'), 'a', 'it waits');
      assert.ok(time.nowMs() < 3 * limits.keyCacheTtlMs, 'it is not looked up again');
      await time.pass(stepMs);
    }
    assert.equal(lookups.miss, 1);
  });

  test('many callers in use are looked up again at the same time', async (t) => {
    const time = manualTime(t);
    const { use, lookedUpMs } = openTestCache();
    const names = Array.from({ length: 100 }, (_, i) => `caller ${i}`);
    for (const name of names) {
      await use(name);
      await time.pass(1);
    }
    await time.pass(limits.keyRenewMs);
    for (const name of names) void use(name);
    await time.pass(limits.keyRenewPauseMs);
    assert.equal(lookedUpMs.length, 2 * names.length);
    assert.equal(new Set(lookedUpMs.slice(names.length)).size, 1);
  });

  test('a caller that is not used is not looked up', async (t) => {
    const time = manualTime(t);
    const { use, lookedUpMs } = openTestCache();
    await use('a');
    await time.pass(limits.keyCacheTtlMs + limits.keyRenewPauseMs);
    assert.equal(lookedUpMs.length, 1);
    assert.notEqual(use('a'), 'a', 'it does not wait for a lookup');
  });

  test('an entry ends a fixed time after its lookup began, even if no other lookup is answered', async (t) => {
    const time = manualTime(t);
    let isStuck = false;
    const { use } = openTestCache(async (name) => {
      await new Promise<void>((resolve) => void setTimeout(resolve, limits.keyRenewMs / 2));
      return isStuck ? new Promise(() => {}) : name;
    });
    const first = use('a');
    await time.pass(limits.keyRenewMs / 2);
    await first;
    isStuck = true;
    while (use('a') === 'a') {
      assert.ok(time.nowMs() < limits.keyCacheTtlMs, `it is used after ${time.nowMs()} ms`);
      await time.pass(stepMs);
    }
    assert.ok(time.nowMs() > limits.keyRenewMs, `it ended after ${time.nowMs()} ms`);
  });

  test('a request after a failed lookup is told why', async (t) => {
    const time = manualTime(t);
    let isRevoked = false;
    const { use } = openTestCache(async (name) => {
      if (isRevoked) throw new Error('revoked');
      return name;
    });
    await use('a');
    isRevoked = true;
    let refused: Error | null = null;
    while (refused === null) {
      assert.ok(time.nowMs() < 3 * limits.keyCacheTtlMs, 'it is never refused');
      await time.pass(stepMs);
      refused = await Promise.resolve(use('a')).then(
        () => null,
        (error: Error) => error,
      );
    }
    assert.match(refused.message, /revoked/);
  });
});
