import assert from 'node:assert/strict';
import { test } from 'node:test';
import { calendarOf } from '../../server/src/core/calendar.ts';
import { readRange as answerRange } from '../../server/src/core/asked-range.ts';
import { formatLocal } from '../../server/src/http/analytics-json.ts';
import { addMonths, instantOf, localMs, todayIn } from '../src/view/local-time.ts';
import { previousPeriod, spanWords } from '../src/view/previous-period.ts';
import { rangeParameters, readRange } from '../src/view/range.ts';

/** What the server would say about a range at this time. */
function answered(query: string, timeZone: string, nowMs: number) {
  const range = readRange(new URLSearchParams(query));
  assert.ok(range !== null, query);
  const calendar = calendarOf(timeZone);
  const answer = answerRange(
    rangeParameters(range, timeZone, nowMs),
    calendar,
    nowMs * 1000,
    'hour',
  );
  assert.ok(answer.kind === 'range', JSON.stringify(answer));
  const text = (us: number | null = null): string | null =>
    us === null ? null : formatLocal(us, calendar);
  return {
    range,
    reply: { from: text(answer.range?.fromUs), to: text(answer.range?.toUs), time_zone: timeZone },
  };
}

function before(query: string, timeZone: string, now: string): [string, string] | null {
  const nowMs = Date.parse(now);
  const { range, reply } = answered(query, timeZone, nowMs);
  const span = previousPeriod(range, reply, nowMs);
  const text = (ms: number): string => formatLocal(ms * 1000, calendarOf(timeZone));
  return span && [text(span.fromMs), text(span.toMs)];
}

test('a range is compared with the time before it, as far as it has got', () => {
  const now = '2026-11-15T10:20:00Z';
  const cases: [query: string, zone: string, from: string, to: string][] = [
    ['last=7d', 'UTC', '2026-11-02T00:00:00+00:00', '2026-11-08T11:00:00+00:00'],
    ['last=1d', 'UTC', '2026-11-14T00:00:00+00:00', '2026-11-14T11:00:00+00:00'],
    ['last=24h', 'UTC', '2026-11-13T09:00:00+00:00', '2026-11-14T10:00:00+00:00'],
    ['period=this-month', 'UTC', '2026-10-01T00:00:00+00:00', '2026-10-15T11:00:00+00:00'],
    ['period=last-month', 'UTC', '2026-09-01T00:00:00+00:00', '2026-10-01T00:00:00+00:00'],
    [
      'from=2026-11-01&to=2026-11-10',
      'UTC',
      '2026-10-22T00:00:00+00:00',
      '2026-11-01T00:00:00+00:00',
    ],
    [
      'from=2026-11-14T09:00:00Z&to=2026-11-14T12:00:00Z',
      'UTC',
      '2026-11-14T06:00:00+00:00',
      '2026-11-14T09:00:00+00:00',
    ],
    ['last=7d', 'Asia/Kolkata', '2026-11-02T00:00:00+05:30', '2026-11-08T16:00:00+05:30'],
    // The clock was set back on 1 November.
    ['last=10d', 'America/New_York', '2026-10-27T00:00:00-04:00', '2026-11-05T06:00:00-05:00'],
    ['last=15d', 'America/New_York', '2026-10-17T00:00:00-04:00', '2026-10-31T06:00:00-04:00'],
  ];
  for (const [query, zone, from, to] of cases)
    assert.deepEqual(before(query, zone, now), [from, to], `${query} in ${zone}`);
});

test('a month is compared with the same days of the month before, which may be shorter', () => {
  const cases: [now: string, from: string, to: string][] = [
    ['2026-03-30T10:20:00Z', '2026-02-01T00:00:00+00:00', '2026-02-28T11:00:00+00:00'],
    ['2026-03-31T23:20:00Z', '2026-02-01T00:00:00+00:00', '2026-03-01T00:00:00+00:00'],
    ['2026-01-01T00:00:00Z', '2025-12-01T00:00:00+00:00', '2025-12-01T01:00:00+00:00'],
  ];
  for (const [now, from, to] of cases)
    assert.deepEqual(before('period=this-month', 'UTC', now), [from, to], now);
});

test('all time and the future have no period before', () => {
  const now = '2026-11-15T10:20:00Z';
  assert.equal(before('period=all', 'UTC', now), null);
  assert.equal(before('from=2026-12-01&to=2026-12-31', 'UTC', now), null);
});

test('the server accepts every period before, in every time zone, through the changes of the clock', () => {
  const zones = [
    'UTC',
    'Asia/Kolkata',
    'Asia/Kathmandu',
    'America/New_York',
    'Australia/Lord_Howe',
    'America/Santiago',
    'Pacific/Apia',
  ];
  const queries = ['last=24h', 'last=7d', 'last=30d', 'period=this-month', 'period=last-month'];
  let asked = 0;
  for (const zone of zones) {
    const calendar = calendarOf(zone);
    // About every 37 hours of two years, at changing times of day.
    for (
      let nowMs = Date.parse('2025-01-01T00:03:00Z');
      nowMs < Date.parse('2027-01-01');
      nowMs += 19_020_000 * 7
    ) {
      for (const query of queries) {
        const { range, reply } = answered(query, zone, nowMs);
        const span = previousPeriod(range, reply, nowMs);
        assert.ok(span !== null, `${query} ${zone} ${new Date(nowMs).toISOString()}`);
        for (const ms of [span.fromMs, span.toMs]) {
          const words = `${query} ${zone} ${new Date(nowMs).toISOString()} ${new Date(ms).toISOString()}`;
          assert.ok(calendar.isHourStart(ms * 1000), words);
        }
        assert.ok(span.toMs <= Date.parse(reply.from ?? ''));
        asked += 1;
      }
    }
  }
  assert.ok(asked > 10_000, `${asked}`);
});

test('local times and instants are each other, through the changes of the clock', () => {
  for (const zone of ['Europe/Berlin', 'Australia/Lord_Howe', 'America/Sao_Paulo', 'UTC']) {
    for (let ms = Date.UTC(2017, 0, 1); ms < Date.UTC(2019, 0, 1); ms += 3 * 3_600_000) {
      const again = instantOf(zone, localMs(zone, ms));
      // A time that exists twice is the first of the two.
      assert.ok(again === ms || (again < ms && ms - again <= 3_600_000), `${zone} ${ms}`);
      assert.equal(localMs(zone, again), localMs(zone, ms));
    }
  }
  // Midnight was skipped in São Paulo, and 02:30 in Berlin.
  const skipped: [zone: string, local: string, instant: string][] = [
    ['America/Sao_Paulo', '2018-11-04T00:00:00Z', '2018-11-04T03:00:00.000Z'],
    ['Europe/Berlin', '2026-03-29T02:30:00Z', '2026-03-29T01:00:00.000Z'],
  ];
  for (const [zone, local, instant] of skipped)
    assert.equal(new Date(instantOf(zone, Date.parse(local))).toISOString(), instant);
  assert.equal(todayIn('Pacific/Auckland', Date.parse('2026-11-15T12:00:00Z')), '2026-11-16');
  assert.equal(addMonths('2024-03-31', -1), '2024-02-29');
  assert.equal(addMonths('2026-01-31', 1), '2026-02-28');
  assert.equal(addMonths('2026-01-15', -1), '2025-12-15');
});

test('a span is said in few words', () => {
  const cases: [from: string, to: string, words: string][] = [
    ['2026-11-09T00:00', '2026-11-16T00:00', 'Nov 9 – 15, 2026'],
    ['2026-10-17T00:00', '2026-11-16T00:00', 'Oct 17 – Nov 15, 2026'],
    ['2025-12-20T00:00', '2026-01-04T00:00', 'Dec 20, 2025 – Jan 3, 2026'],
    ['2026-11-14T00:00', '2026-11-15T00:00', 'Nov 14, 2026'],
    ['2026-11-14T09:00', '2026-11-14T10:00', 'Nov 14, 09:00 – 10:00'],
    ['2026-11-14T09:00', '2026-11-15T10:00', 'Nov 14, 09:00 – Nov 15, 10:00'],
    ['2026-11-03T00:00', '2026-11-09T10:00', 'Nov 3 – Nov 9, 10:00'],
    ['2026-11-14T09:00', '2026-11-16T00:00', 'Nov 14, 09:00 – Nov 16, 00:00'],
  ];
  for (const [from, to, words] of cases)
    assert.equal(spanWords(Date.parse(`${from}Z`), Date.parse(`${to}Z`)), words);
});
