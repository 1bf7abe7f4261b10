import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoopTurns } from '../../src/http/loop-turns.ts';
import { limits } from '../../src/limits.ts';
import { manualTime } from '../support/manual-time.ts';

const heavyMs = 3 * limits.heavyTurnMsMax;

test('light work starts at once', () => {
  const turns = new LoopTurns();
  let started = 0;
  for (let i = 0; i < 10; i++) turns.enter('a', () => (started += 1));
  assert.equal(started, 10);
});

test('light work that fills a turn goes on in the next, all of it', async (t) => {
  const time = manualTime(t);
  const turns = new LoopTurns();
  let started = 0;
  for (let i = 0; i < 200; i++) {
    turns.enter(`team-${i % 3}`, () => {
      started += 1;
      time.work(0.2);
    });
  }
  assert.ok(started < 200, 'the turn was not filled');
  for (let turn = 0; turn < 20; turn++) await time.pass(0);
  assert.equal(started, 200);
});

test('heavy work gives other events their turn between, and teams take turns', async (t) => {
  const time = manualTime(t);
  const turns = new LoopTurns();
  const log: string[] = [];
  const heavy = (name: string): void =>
    turns.enter(name.slice(0, 1), () => {
      log.push(name);
      time.work(heavyMs);
    });
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2']) heavy(name);
  assert.deepEqual(log, ['a1']);
  let turnsBetween = 0;
  while (log.length < 5) {
    assert.ok(turnsBetween < 1_000, log.join());
    const before = log.length;
    await time.pass(1);
    turnsBetween += 1;
    assert.ok(log.length - before <= 1, 'more than one in a turn');
  }
  // A pause after each but the last is as long as the work was.
  assert.ok(turnsBetween >= 4 * heavyMs, `only ${turnsBetween} turns were left to others`);
  assert.deepEqual(log, ['a1', 'a2', 'b1', 'a3', 'b2']);
});
