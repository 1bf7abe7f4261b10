import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TeamLines } from '../../src/ingest/team-lines.ts';

const turnWork = 10;
const always = (): boolean => true;

interface Item {
  team: string;
  no: number;
  work: number;
}

const items = fc.array(
  fc.record({ team: fc.constantFrom('a', 'b', 'c'), work: fc.integer({ min: 1, max: 40 }) }),
  { maxLength: 60 },
);

function linesOf(list: readonly { team: string; work: number }[]): TeamLines<Item> {
  const lines = new TeamLines<Item>(turnWork);
  for (const [no, { team, work }] of list.entries()) lines.push(team, { team, work, no });
  return lines;
}

function takeAll(lines: TeamLines<Item>): Item[] {
  const taken: Item[] = [];
  for (let item = lines.shift(always); item; item = lines.shift(always)) taken.push(item);
  return taken;
}

test('everything is handed out once, and the work of a team in its order', () => {
  fc.assert(
    fc.property(items, (list) => {
      const lines = linesOf(list);
      const taken = takeAll(lines);
      assert.ok(lines.isEmpty);
      for (const name of ['a', 'b', 'c']) {
        assert.deepEqual(
          taken.filter(({ team }) => team === name).map(({ no }) => no),
          [...list.keys()].filter((no) => list[no]?.team === name),
        );
      }
    }),
    { numRuns: 300 },
  );
});

test('two teams that wait get the same amount of work, up to a turn and the largest item', () => {
  const waiting = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 40, maxLength: 40 });
  fc.assert(
    fc.property(waiting, waiting, (ofA, ofB) => {
      const lines = linesOf([
        ...ofA.map((work) => ({ team: 'a', work })),
        ...ofB.map((work) => ({ team: 'b', work })),
      ]);
      const got = { a: 0, b: 0 };
      const left = { a: 40, b: 40 };
      for (const { team, work } of takeAll(lines)) {
        got[team as 'a' | 'b'] += work;
        left[team as 'a' | 'b'] -= 1;
        if (left.a === 0 || left.b === 0) break;
        assert.ok(Math.abs(got.a - got.b) <= turnWork + 40, JSON.stringify(got));
      }
    }),
    { numRuns: 300 },
  );
});

test('a team without room does not hold up the others, and goes on when it has room', () => {
  const lines = linesOf([
    { team: 'a', work: 5 },
    { team: 'b', work: 5 },
    { team: 'b', work: 5 },
  ]);
  const notA = (team: string): boolean => team !== 'a';
  assert.deepEqual([lines.shift(notA)?.no, lines.shift(notA)?.no], [1, 2]);
  assert.equal(lines.shift(notA), undefined);
  assert.equal(lines.isEmpty, false);
  assert.equal(lines.shift(always)?.no, 0);
  assert.ok(lines.isEmpty);
});
