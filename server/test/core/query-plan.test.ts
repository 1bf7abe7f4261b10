import assert from 'node:assert/strict';
import { test } from 'node:test';
import { calendarOf } from '../../src/core/calendar.ts';
import { grainNumbers } from '../../src/core/dimensions.ts';
import type { Grain } from '../../src/core/dimensions.ts';
import { planQuery, splitAtDays } from '../../src/core/query-plan.ts';
import type { TallyQuery } from '../../src/core/query.ts';

const utc = calendarOf('UTC');
const us = (time: string): number => Date.parse(time) * 1000;
const dayOf = (date: string): number => utc.dayOf(us(`${date}T00:00:00Z`));
const secondOf = (time: string): number => us(time) / 1_000_000;

function tilesOf(query: Partial<TallyQuery>) {
  const plan = planQuery(
    { filter: {}, groupBy: ['model'], range: null, interval: null, ...query },
    utc,
  );
  return plan.kind === 'rollups' ? plan.tiles : assert.fail('not from rollups');
}

const tile = (grain: Grain, fromBucket: number, toBucket: number) => ({
  grain: grainNumbers[grain],
  fromBucket,
  toBucket,
});

// 2 November 2026 is a Monday.
const range = { fromUs: us('2026-10-30T22:00:00Z'), toUs: us('2026-11-18T03:00:00Z') };

test('a range is tiled with whole weeks, then whole days, then hours', () => {
  const expected = [
    tile('hour', secondOf('2026-10-30T22:00:00Z'), secondOf('2026-10-31T00:00:00Z')),
    tile('day', dayOf('2026-10-31'), dayOf('2026-11-02')),
    tile('week', dayOf('2026-11-02'), dayOf('2026-11-16')),
    tile('day', dayOf('2026-11-16'), dayOf('2026-11-18')),
    tile('hour', secondOf('2026-11-18T00:00:00Z'), secondOf('2026-11-18T03:00:00Z')),
  ];
  assert.deepEqual(tilesOf({ range }), expected);
  assert.deepEqual(tilesOf({ range, interval: 'week' }), expected);
});

test('weeks are not used for days or months, which they do not fit into', () => {
  for (const interval of ['day', 'month'] as const) {
    const grains = new Set(tilesOf({ range, interval }).map(({ grain }) => grain));
    assert.deepEqual(grains, new Set([grainNumbers.hour, grainNumbers.day]));
    assert.equal(tilesOf({ interval })[0]?.grain, grainNumbers[interval]);
  }
});

test('whole months come first, with weeks and days before and after them', () => {
  const year = { fromUs: us('2026-01-30T00:00:00Z'), toUs: us('2026-12-18T00:00:00Z') };
  const months = tile('month', dayOf('2026-02-01'), dayOf('2026-12-01'));
  assert.deepEqual(tilesOf({ range: year }), [
    tile('day', dayOf('2026-01-30'), dayOf('2026-02-01')),
    months,
    tile('day', dayOf('2026-12-01'), dayOf('2026-12-07')),
    tile('week', dayOf('2026-12-07'), dayOf('2026-12-14')),
    tile('day', dayOf('2026-12-14'), dayOf('2026-12-18')),
  ]);
  assert.deepEqual(tilesOf({ range: year, interval: 'month' }), [
    tile('day', dayOf('2026-01-30'), dayOf('2026-02-01')),
    months,
    tile('day', dayOf('2026-12-01'), dayOf('2026-12-18')),
  ]);
});

test('a range without a whole week is tiled with days', () => {
  const days = { fromUs: us('2026-11-03T00:00:00Z'), toUs: us('2026-11-15T00:00:00Z') };
  assert.deepEqual(tilesOf({ range: days }), [
    tile('day', dayOf('2026-11-03'), dayOf('2026-11-15')),
  ]);
});

test('a range without whole days at its ends is split into days and the rest, without gaps, if rollups have no hours', () => {
  const ofUsers = { filter: {}, groupBy: ['user_identifier'], interval: null, range } as const;
  assert.equal(planQuery(ofUsers, utc).kind, 'traces');
  const split = splitAtDays(ofUsers, utc) ?? assert.fail();
  assert.deepEqual(
    [split.days, ...split.edges].map((part) => part.range),
    [
      { fromUs: us('2026-10-31T00:00:00Z'), toUs: us('2026-11-18T00:00:00Z') },
      { fromUs: range.fromUs, toUs: us('2026-10-31T00:00:00Z') },
      { fromUs: us('2026-11-18T00:00:00Z'), toUs: range.toUs },
    ],
  );
  assert.deepEqual(split.plan, planQuery(split.days, utc));
  const fromMidnight = { fromUs: us('2026-10-31T00:00:00Z'), toUs: range.toUs };
  assert.equal(splitAtDays({ ...ofUsers, range: fromMidnight }, utc)?.edges.length, 1);
});

test('a range without a whole day, hours, all time, and fields without rollups are not split', () => {
  const ofUsers = { filter: {}, groupBy: ['user_identifier'], interval: null, range } as const;
  const short = { fromUs: us('2026-11-03T10:00:00Z'), toUs: us('2026-11-04T23:00:00Z') };
  assert.equal(splitAtDays({ ...ofUsers, range: short }, utc), null);
  assert.equal(splitAtDays({ ...ofUsers, interval: 'hour' }, utc), null);
  assert.equal(splitAtDays({ ...ofUsers, range: null }, utc), null);
  assert.equal(splitAtDays({ ...ofUsers, groupBy: ['error_type'] }, utc), null);
});
