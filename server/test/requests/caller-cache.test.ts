import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openCallerCache } from '../../src/http/caller-cache.ts';
import { limits } from '../../src/limits.ts';
import { eventually } from '../support/eventually.ts';

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
  test('a caller in constant use waits for the first lookup only', async () => {
    const { use, lookups, lookedUpMs } = openTestCache();
    await use('a');
    await eventually(
      'three lookups',
      30_000,
      () => {
        assert.equal(use('a'), 'a', 'it waits');
        return lookedUpMs.length >= 3;
      },
      stepMs,
    );
    assert.equal(lookups.miss, 1);
  });

  test('many callers in use are looked up again at the same time', async () => {
    const { use, lookedUpMs } = openTestCache();
    const names = Array.from({ length: 100 }, (_, i) => `caller ${i}`);
    for (const name of names) {
      await use(name);
      await sleep(1);
    }
    await sleep(limits.keyRenewMs);
    for (const name of names) void use(name);
    await eventually('everyone', 30_000, () => lookedUpMs.length === 2 * names.length);
    const again = lookedUpMs.slice(names.length);
    const firstTookMs = (lookedUpMs[names.length - 1] ?? 0) - (lookedUpMs[0] ?? 0);
    assert.ok((again.at(-1) ?? 0) - (again[0] ?? 0) < firstTookMs);
  });

  test('a caller that is not used is not looked up', async () => {
    const { use, lookedUpMs } = openTestCache();
    await use('a');
    await sleep(limits.keyCacheTtlMs + limits.keyRenewPauseMs);
    assert.equal(lookedUpMs.length, 1);
    assert.notEqual(use('a'), 'a', 'it does not wait for a lookup');
  });

  test('an entry ends a fixed time after its lookup began, even if no other lookup is answered', async () => {
    let isStuck = false;
    const { use } = openTestCache(async (name) => {
      await sleep(limits.keyRenewMs / 2);
      return isStuck ? new Promise(() => {}) : name;
    });
    const startMs = performance.now();
    await use('a');
    isStuck = true;
    await eventually(
      'the end',
      30_000,
      () => {
        const askedMs = performance.now() - startMs;
        if (use('a') !== 'a') return true;
        assert.ok(askedMs < limits.keyCacheTtlMs, `it is used after ${askedMs} ms`);
        return false;
      },
      stepMs,
    );
  });

  test('a request after a failed lookup is told why', async () => {
    let isRevoked = false;
    const { use } = openTestCache(async (name) => {
      if (isRevoked) throw new Error('revoked');
      return name;
    });
    await use('a');
    isRevoked = true;
    const refused = await eventually(
      'a refusal',
      30_000,
      async () => {
        try {
          return (await use('a')) !== 'a';
        } catch (error) {
          return error;
        }
      },
      stepMs,
    );
    assert.match(String(refused), /revoked/);
  });
});
