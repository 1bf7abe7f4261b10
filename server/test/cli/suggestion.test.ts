import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { closest, editsBetween } from '../../src/cli/suggestion.ts';

describe('the number of edits between two words', () => {
  const rows: [from: string, to: string, edits: number][] = [
    ['', '', 0],
    ['', 'abc', 3],
    ['abc', '', 3],
    ['team', 'team', 0],
    ['tem', 'team', 1],
    ['teamm', 'team', 1],
    ['teem', 'team', 1],
    ['taem', 'team', 1],
    ['etma', 'team', 2],
    ['kitten', 'sitting', 3],
    ['abc', 'xyz', 3],
  ];
  for (const [from, to, edits] of rows) {
    test(`"${from}" and "${to}": ${edits}`, () => {
      assert.equal(editsBetween(from, to), edits);
      assert.equal(editsBetween(to, from), edits);
    });
  }
});

describe('the candidate that was meant', () => {
  const flags = ['--team', '--name', '--scope', '--expires', '--json', '--database', '--help'];
  const commands = ['serve', 'keys create', 'keys list', 'keys', 'verify', 'copy', 'demo'];
  const rows: [typed: string, candidates: readonly string[], meant: string | null][] = [
    ['--tem', flags, '--team'],
    ['--TEAM', flags, '--team'],
    ['--nmae', flags, '--name'],
    ['--expire', flags, '--expires'],
    ['--data', flags, '--database'],
    ['--d', flags, '--database'],
    ['--x', flags, null],
    ['--frobnicate', flags, null],
    ['serv', commands, 'serve'],
    ['verfiy', commands, 'verify'],
    ['key list', commands, 'keys list'],
    ['key', commands, 'keys'],
    ['c', commands, null],
    ['', commands, null],
    ['serve', [], null],
  ];
  for (const [typed, candidates, meant] of rows) {
    test(`"${typed}": ${meant}`, () => assert.equal(closest(typed, candidates), meant));
  }
  test('the nearest of several wins, and of equally near ones the first', () => {
    assert.equal(closest('copx', ['cope', 'copy']), 'cope');
    assert.equal(closest('backupp', ['backdrop', 'backup']), 'backup');
  });
});
