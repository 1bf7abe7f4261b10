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
  for (let i = 0; i < 100; i++) turns.enter('a', () => (started += 1));
  assert.equal(started, 100);
});

test('heavy work gives other events their turn between, and teams take turns', async () => {
  const turns = new LoopTurns();
  const log: string[] = [];
  const heavy = (name: string): void =>
    turns.enter(name.slice(0, 1), () => {
      log.push(name);
      work(limits.heavyTurnMsMax + 5);
    });
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2']) heavy(name);
  assert.deepEqual(log, ['a1']);
  for (let i = 0; i < 100 && log.length < 5; i++) {
    const before = log.length;
    await nextTurn();
    assert.ok(log.length - before <= 1, 'more than one in a turn');
  }
  assert.deepEqual(log, ['a1', 'a2', 'b1', 'a3', 'b2']);
});
