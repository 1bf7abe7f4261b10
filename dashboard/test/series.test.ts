import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QueryReply, QueryRow } from '../../client/src/reading.ts';
import { bucketsOf, layersOf, noTotals, sum, tokenKinds } from '../src/overview/series.ts';
import { lastDays } from '../src/view/range.ts';
import type { Interval, Range } from '../src/view/range.ts';

function row(fields: Partial<QueryRow>): QueryRow {
  return { ...noTotals, ...fields };
}

function reply(rows: QueryRow[], fields: Partial<QueryReply> = {}): QueryReply {
  return {
    from: null,
    to: null,
    time_zone: 'Europe/Berlin',
    rows,
    other: [],
    totals: row({}),
    ...fields,
  };
}

const between = (from: string, to: string): Range => ({ kind: 'between', from, to });

test('a bar is named after its time, and leads to exactly its time within the range', () => {
  const cases: {
    interval: Interval;
    asked: Range;
    bounds: [string | null, string | null];
    starts: string[];
    labels: string[];
    ranges: [string, string][];
  }[] = [
    {
      interval: 'day',
      asked: lastDays(2),
      bounds: ['2026-11-14T00:00:00+01:00', '2026-11-16T00:00:00+01:00'],
      starts: ['2026-11-14T00:00:00+01:00', '2026-11-15T00:00:00+01:00'],
      labels: ['Nov 14', 'Nov 15'],
      ranges: [
        ['2026-11-14', '2026-11-14'],
        ['2026-11-15', '2026-11-15'],
      ],
    },
    {
      interval: 'hour',
      asked: { kind: 'last', count: 1, unit: 'h' },
      bounds: ['2026-10-25T02:00:00+02:00', '2026-10-25T03:00:00+01:00'],
      // The same hour twice, when the clock is set back.
      starts: ['2026-10-25T02:00:00+02:00', '2026-10-25T02:00:00+01:00'],
      labels: ['Oct 25, 02:00', 'Oct 25, 02:00'],
      ranges: [
        ['2026-10-25T02:00:00+02:00', '2026-10-25T02:00:00+01:00'],
        ['2026-10-25T02:00:00+01:00', '2026-10-25T03:00:00+01:00'],
      ],
    },
    {
      interval: 'week',
      asked: between('2026-01-07', '2026-06-02'),
      bounds: ['2026-01-07T00:00:00+01:00', '2026-06-03T00:00:00+02:00'],
      starts: [
        '2026-01-05T00:00:00+01:00',
        '2026-01-12T00:00:00+01:00',
        '2026-06-01T00:00:00+02:00',
      ],
      labels: ['Jan 7 – 11, 2026', 'Jan 12 – 18, 2026', 'Jun 1 – 2, 2026'],
      ranges: [
        ['2026-01-07', '2026-01-11'],
        ['2026-01-12', '2026-01-18'],
        ['2026-06-01', '2026-06-02'],
      ],
    },
    {
      interval: 'month',
      asked: { kind: 'all' },
      bounds: [null, null],
      starts: ['2026-01-01T00:00:00+01:00', '2026-02-01T00:00:00+01:00'],
      labels: ['Jan 2026', 'Feb 2026'],
      ranges: [
        ['2026-01-01', '2026-01-31'],
        ['2026-02-01', '2026-02-28'],
      ],
    },
    {
      interval: 'week',
      asked: { kind: 'last', count: 100, unit: 'd' },
      bounds: ['2026-08-08T00:00:00+02:00', '2026-11-16T00:00:00+01:00'],
      starts: ['2026-08-03T00:00:00+02:00', '2026-11-09T00:00:00+01:00'],
      labels: ['Aug 8 – 9, 2026', 'Nov 9 – 15, 2026'],
      ranges: [
        ['2026-08-08', '2026-08-09'],
        ['2026-11-09', '2026-11-15'],
      ],
    },
  ];
  for (const { interval, asked, bounds, starts, labels, ranges } of cases) {
    const [from, to] = bounds;
    const rows = starts.map((start) => row({ start }));
    const buckets = bucketsOf(reply(rows, { from, to }), interval, asked);
    assert.deepEqual(
      buckets.map(({ label }) => label),
      labels,
    );
    assert.deepEqual(
      buckets.map(({ range }) => range),
      ranges.map(([first, last]) => between(first, last)),
    );
  }
});

test('layers have a part for every bar; not set, other and a name "other" are different', () => {
  const starts = ['2026-11-14T00:00:00+01:00', '2026-11-15T00:00:00+01:00'];
  const buckets = bucketsOf(reply(starts.map((start) => row({ start }))), 'day', lastDays(2));
  const [first, second] = starts;
  const layers = layersOf(
    reply(
      [
        row({ start: first, feature_name: 'other', call_count: 3 }),
        row({ start: first, feature_name: null, call_count: 2 }),
        row({ start: second, feature_name: 'other', call_count: 1 }),
        // A new day has begun between the two answers.
        row({ start: '2026-11-16T00:00:00+01:00', feature_name: 'other', call_count: 9 }),
      ],
      { other: [row({ start: second, call_count: 5 })] },
    ),
    'feature_name',
    buckets,
  );
  assert.deepEqual(
    layers.map(({ name, value, parts }) => [name, value, parts.map((part) => part.call_count)]),
    [
      ['other', 'other', [3, 1]],
      ['not set', null, [2, 0]],
      ['other', undefined, [0, 5]],
    ],
  );
  assert.equal(new Set(layers.map(({ key }) => key)).size, 3);
});

test('sums of decimals have no noise, and cached tokens are counted once', () => {
  assert.equal(sum([0.1, 0.2]), 0.3);
  assert.equal(sum([]), 0);
  const tokens = row({ prompt_tokens: 100, cache_read_tokens: 30, completion_tokens: 7 });
  assert.deepEqual(
    tokenKinds.map(({ of }) => of(tokens)),
    [70, 30, 7],
  );
});
