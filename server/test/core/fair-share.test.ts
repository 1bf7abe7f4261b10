import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Holder } from '../../src/core/fair-share.ts';
import { FairShare } from '../../src/core/fair-share.ts';

const holder = (teamId: string, keyId = `key of ${teamId}`): Holder => ({ teamId, keyId });

/** Takes one unit after the other until no more is to be had. */
function takeAll(share: FairShare, ...holders: Holder[]): number[] {
  const taken = holders.map(() => 0);
  for (let isMore = true; isMore;) {
    isMore = false;
    for (const [i, own] of holders.entries()) {
      if (!share.tryTake(own, 1)) continue;
      taken[i] = (taken[i] ?? 0) + 1;
      isMore = true;
    }
  }
  return taken;
}

test('a single key gets a third, and the keys of a single team at most half', () => {
  assert.deepEqual(takeAll(new FairShare(300), holder('a')), [100]);
  const keys = Array.from({ length: 5 }, (_, i) => holder('a', `key-${i}`));
  const taken = takeAll(new FairShare(300), ...keys).reduce((sum, n) => sum + n, 0);
  assert.ok(taken > 100 && taken <= 150, `${taken}`);
  assert.deepEqual(takeAll(new FairShare(300), { teamId: 'a', keyId: null }), [150]);
});

test('greedy teams get equal parts and leave one more part free', () => {
  for (const count of [2, 3, 9]) {
    const share = new FairShare(1_000);
    const taken = takeAll(share, ...Array.from({ length: count }, (_, i) => holder(`team-${i}`)));
    const part = Math.floor(1_000 / (count + 1));
    for (const own of taken) assert.ok(Math.abs(own - part) <= 1, `${own} of ${part}`);
    assert.ok(share.tryTake(holder('newcomer'), part - count), 'a newcomer finds room');
  }
});

test('a holder without a share may take all that is free', () => {
  const share = new FairShare(100);
  assert.ok(share.tryTake(holder('a'), 100));
  assert.ok(!share.hasRoom(holder('b')));
  share.give(holder('a'), 100);
  assert.ok(share.hasRoom(holder('b')));
});

test('what is given back is there again, whatever the order', () => {
  const step = fc.record({
    team: fc.nat(3),
    key: fc.nat(2),
    amount: fc.integer({ min: 1, max: 40 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.nat(), (steps, seed) => {
      const share = new FairShare(200);
      const held: [Holder, number][] = [];
      for (const [i, { team, key, amount }] of steps.entries()) {
        const own = holder(`${team}`, `${team}-${key}`);
        if (share.tryTake(own, amount)) held.push([own, amount]);
        assert.ok(share.used <= 200);
        if ((seed + i) % 3 === 0) {
          const [back] = held.splice((seed + i) % Math.max(1, held.length), 1);
          if (back) share.give(...back);
        }
        assert.equal(
          share.used,
          held.reduce((sum, [, n]) => sum + n, 0),
        );
      }
      for (const own of held) share.give(...own);
      assert.equal(share.used, 0);
      assert.ok(share.tryTake(holder('last'), 200));
    }),
  );
});
