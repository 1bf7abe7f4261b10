import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvText } from '../../src/core/csv.ts';
import type { Cell } from '../../src/core/csv.ts';

test('cells are quoted if they must be, and formulas become text', () => {
  const cases: [cell: Cell, text: string][] = [
    ['plain', 'plain'],
    ['', ''],
    [null, ''],
    ['a,b', '"a,b"'],
    ['a;=1', '"a;=1"'],
    ['say "hi"', '"say ""hi"""'],
    ['two\nlines', '"two\nlines"'],
    [' padded ', '" padded "'],
    ['=1+1', "'=1+1"],
    ['=HYPERLINK("http://evil.test","x")', '"\'=HYPERLINK(""http://evil.test"",""x"")"'],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t=1"],
    ['  =1', "'  =1"],
    ['\r=1', '"\'\r=1"'],
    ['＝1+1', "'＝1+1"],
    ['a=1', 'a=1'],
    ['über', 'über'],
    [0, '0'],
    [12.5, '12.5'],
    [-3, '-3'],
    [{ digits: '-0.000000000001' }, '-0.000000000001'],
    [1e-7, '0.0000001'],
    [123456789.123456, '123456789.123456'],
  ];
  for (const [cell, text] of cases)
    assert.equal(csvText(['name', 'value'], [[cell, 1]]), `name,value\r\n${text},1\r\n`);
});
