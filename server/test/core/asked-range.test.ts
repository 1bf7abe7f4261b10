import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readRange, wholeRange } from '../../src/core/asked-range.ts';
import type { RangeText } from '../../src/core/asked-range.ts';
import { calendarOf, nextHour } from '../../src/core/calendar.ts';
import { us } from '../support/service.ts';

/** What a range means in a time zone: from, included, to, excluded. */
const rows: [zone: string, now: string, text: RangeText, from: string | null, to: string][] = [
  ['UTC', '2026-11-04T12:34:56Z', { last: '1d' }, '2026-11-04T00:00:00Z', '2026-11-05T00:00:00Z'],
  ['UTC', '2026-11-04T12:34:56Z', { last: '7d' }, '2026-10-29T00:00:00Z', '2026-11-05T00:00:00Z'],
  ['UTC', '2026-11-04T12:34:56Z', { last: '24h' }, '2026-11-03T12:00:00Z', '2026-11-04T13:00:00Z'],
  ['UTC', '2026-11-04T12:00:00Z', { last: '1h' }, '2026-11-04T11:00:00Z', '2026-11-04T13:00:00Z'],
  [
    'UTC',
    '2026-11-04T12:00:00Z',
    { from: '2026-11-01' },
    '2026-11-01T00:00:00Z',
    '2026-11-05T00:00:00Z',
  ],
  ['UTC', '2026-11-04T12:00:00Z', { to: '2026-11-01' }, null, '2026-11-02T00:00:00Z'],
  [
    'UTC',
    '2026-11-04T12:00:00Z',
    { from: '2026-12-01', to: '2026-12-01' },
    '2026-12-01T00:00:00Z',
    '2026-12-02T00:00:00Z',
  ],
  [
    'Asia/Kolkata',
    '2026-11-04T19:00:00Z',
    { last: '1d' },
    '2026-11-04T18:30:00Z',
    '2026-11-05T18:30:00Z',
  ],
  [
    'Asia/Kolkata',
    '2026-11-04T19:10:00Z',
    { last: '2h' },
    '2026-11-04T16:30:00Z',
    '2026-11-04T19:30:00Z',
  ],
  [
    'Asia/Kathmandu',
    '2026-11-04T12:00:00Z',
    { from: '2026-11-04', to: '2026-11-04T12:15:00Z' },
    '2026-11-03T18:15:00Z',
    '2026-11-04T12:15:00Z',
  ],
  // The clock is set back: the first of November has 25 hours.
  [
    'America/New_York',
    '2026-11-02T12:00:00Z',
    { from: '2026-11-01', to: '2026-11-01' },
    '2026-11-01T04:00:00Z',
    '2026-11-02T05:00:00Z',
  ],
  [
    'America/New_York',
    '2026-11-01T06:30:00Z',
    { last: '1h' },
    '2026-11-01T05:00:00Z',
    '2026-11-01T07:00:00Z',
  ],
  // It is set forward: the eighth of March has 23 hours.
  [
    'America/New_York',
    '2026-03-09T12:00:00Z',
    { from: '2026-03-08', to: '2026-03-08' },
    '2026-03-08T05:00:00Z',
    '2026-03-09T04:00:00Z',
  ],
  // It is set back by half an hour: an hour of 30 minutes begins at the change.
  [
    'Australia/Lord_Howe',
    '2026-04-04T15:10:00Z',
    { last: '1h' },
    '2026-04-04T14:00:00Z',
    '2026-04-04T15:30:00Z',
  ],
  [
    'Australia/Lord_Howe',
    '2026-04-05T00:00:00Z',
    { from: '2026-04-05', to: '2026-04-05' },
    '2026-04-04T13:00:00Z',
    '2026-04-05T13:30:00Z',
  ],
];

describe('a range is one of the time zone of the team', () => {
  for (const [zone, now, text, from, to] of rows) {
    test(`${JSON.stringify(text)} in ${zone} at ${now}`, () => {
      const calendar = calendarOf(zone);
      const answer = readRange(text, calendar, us(now), 'hour');
      assert.deepEqual(answer, {
        kind: 'range',
        range: { fromUs: from === null ? null : us(from), toUs: us(to) },
      });
      assert.ok(from === null || calendar.isHourStart(us(from)));
      assert.ok(calendar.isHourStart(us(to)));
    });
  }
});

test('without parameters there is no range, and without a beginning everything is included', () => {
  const utc = calendarOf('UTC');
  assert.deepEqual(readRange({}, utc, us('2026-11-04T12:00:00Z'), 'hour'), {
    kind: 'range',
    range: null,
  });
  assert.equal(wholeRange(null, utc), null);
  for (const zone of ['UTC', 'Pacific/Kiritimati', 'Pacific/Pago_Pago']) {
    const range = wholeRange({ fromUs: null, toUs: 9 }, calendarOf(zone));
    assert.ok(range && range.fromUs <= 0, zone);
  }
});

test('a bound of a list may be any instant, one of an analytics question only a whole hour', () => {
  const text = { from: '2026-11-03T12:00:00.000001Z' };
  const calendar = calendarOf('Asia/Kolkata');
  const now = us('2026-11-04T12:00:00Z');
  assert.equal(readRange(text, calendar, now, 'instant').kind, 'range');
  assert.deepEqual(readRange(text, calendar, now, 'hour'), {
    kind: 'invalid',
    errors: [
      {
        field: 'from',
        message: 'must be a whole hour in the time zone of the team, Asia/Kolkata, or a date',
      },
    ],
  });
});

test('the next hour begins when the local clock shows one, or when it is changed', () => {
  const table: [zone: string, at: string, next: string][] = [
    ['UTC', '2026-11-04T12:00:00Z', '2026-11-04T13:00:00Z'],
    ['Asia/Kathmandu', '2026-11-04T12:00:00Z', '2026-11-04T12:15:00Z'],
    ['Australia/Lord_Howe', '2026-10-03T15:10:00Z', '2026-10-03T15:30:00Z'],
    ['Australia/Lord_Howe', '2026-10-03T15:40:00Z', '2026-10-03T16:00:00Z'],
  ];
  for (const [zone, at, next] of table) {
    assert.equal(nextHour(calendarOf(zone), us(at)) * 1_000_000, us(next), `${zone} ${at}`);
  }
});
