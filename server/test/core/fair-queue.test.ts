import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FairQueue } from '../../src/core/fair-queue.ts';
import { CallerLeft } from '../../src/errors.ts';

const full = () => new Error('full');

/** Work that ends when the test says so. */
function held(queue: FairQueue) {
  const log: string[] = [];
  const ends: Map<string, () => void> = new Map();
  return {
    log,
    add(team: string, name: string): Promise<void> {
      return queue.run(team, async () => {
        log.push(name);
        await new Promise<void>((resolve) => ends.set(name, resolve));
      });
    },
    async end(name: string): Promise<void> {
      ends.get(name)?.();
      await nextTurn();
    },
  };
}

test('teams take turns, however long the line of one of them is', async () => {
  const work = held(new FairQueue({ runningMax: 1, teamRunningMax: 1, teamWaitingMax: 9 }, full));
  const all = ['a1', 'a2', 'a3', 'b1', 'c1', 'b2'].map((name) => work.add(name.slice(0, 1), name));
  for (const name of ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']) {
    assert.equal(work.log.at(-1), name);
    await work.end(name);
  }
  await Promise.all(all);
});

test('one team leaves places for others', async () => {
  const work = held(new FairQueue({ runningMax: 3, teamRunningMax: 2, teamWaitingMax: 9 }, full));
  const all = ['a1', 'a2', 'a3', 'b1'].map((name) => work.add(name.slice(0, 1), name));
  assert.deepEqual(work.log, ['a1', 'a2', 'b1']);
  for (const name of ['a1', 'a2', 'b1', 'a3']) await work.end(name);
  await Promise.all(all);
});

test('a full queue of one team refuses writes of that team only', async () => {
  const work = held(new FairQueue({ runningMax: 1, teamRunningMax: 1, teamWaitingMax: 1 }, full));
  const all = [work.add('a', 'a1'), work.add('a', 'a2'), work.add('b', 'b1')];
  await assert.rejects(work.add('a', 'a3'), /full/);
  for (const name of ['a1', 'b1', 'a2']) await work.end(name);
  await Promise.all(all);
  assert.deepEqual(work.log, ['a1', 'b1', 'a2']);
});

test('work that is no longer wanted is not started, and gives its place back', async () => {
  const queue = new FairQueue({ runningMax: 1, teamRunningMax: 1, teamWaitingMax: 9 }, full);
  const work = held(queue);
  const first = work.add('a', 'a1');
  let isWanted = true;
  let isStarted = false;
  const second = assert.rejects(
    queue.run(
      'a',
      async () => void (isStarted = true),
      () => isWanted,
    ),
    CallerLeft,
  );
  const third = work.add('a', 'a3');
  isWanted = false;
  await work.end('a1');
  await second;
  assert.equal(isStarted, false);
  await nextTurn();
  await work.end('a3');
  await Promise.all([first, third]);
  assert.deepEqual(work.log, ['a1', 'a3']);
});

test('work that fails gives its place back', async () => {
  const queue = new FairQueue({ runningMax: 1, teamRunningMax: 1, teamWaitingMax: 1 }, full);
  await assert.rejects(
    queue.run('a', () => Promise.reject(new Error('no'))),
    /no/,
  );
  assert.equal(await queue.run('a', () => Promise.resolve(1)), 1);
});
