import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LoopTurns } from '../../src/http/loop-turns.ts';
import { limits } from '../../src/limits.ts';

/** Keeps the thread busy. */
function work(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

test('light work starts at once', () => {
  const turns = new LoopTurns();
  let started = 0;
  for (let i = 0; i < 10; i++) turns.enter('a', () => (started += 1));
  assert.equal(started, 10);
});

test('light work that fills a turn goes on in the next, all of it', async () => {
  const turns = new LoopTurns();
  let started = 0;
  for (let i = 0; i < 200; i++) {
    turns.enter(`team-${i % 3}`, () => {
      started += 1;
      work(0.2);
    });
  }
  assert.ok(started < 200, 'the turn was not filled');
  const untilMs = performance.now() + 5_000;
  while (started < 200) {
    assert.ok(performance.now() < untilMs, `${started}`);
    await nextTurn();
  }
});

test('heavy work gives other events their turn between, and teams take turns', async () => {
  const turns = new LoopTurns();
  const log: string[] = [];
  const heavy = (name: string): void =>
    turns.enter(name.slice(0, 1), () => {
      log.push(name);
      work(3 * limits.heavyTurnMsMax);
    });
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2']) heavy(name);
  assert.deepEqual(log, ['a1']);
  const untilMs = performance.now() + 5_000;
  let turnsBetween = 0;
  while (log.length < 5) {
    assert.ok(performance.now() < untilMs, log.join());
    const before = log.length;
    await nextTurn();
    turnsBetween += 1;
    assert.ok(log.length - before <= 1, 'more than one in a turn');
  }
  assert.ok(turnsBetween > 20, `only ${turnsBetween} turns were left to others`);
  assert.deepEqual(log, ['a1', 'a2', 'b1', 'a3', 'b2']);
});
