import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatTimestamp } from '../../src/core/clock.ts';
import { parseTimestamp } from '../../src/core/timestamp.ts';

test('an RFC 3339 time is read to the microsecond, with any offset', () => {
  const table = {
    '2026-11-04T09:30:00Z': '2026-11-04T09:30:00.000000Z',
    '2026-11-04t09:30:00z': '2026-11-04T09:30:00.000000Z',
    '2026-11-04T09:30:00.5Z': '2026-11-04T09:30:00.500000Z',
    '2026-11-04T09:30:00.123456Z': '2026-11-04T09:30:00.123456Z',
    '2026-11-04T09:30:00.123456999Z': '2026-11-04T09:30:00.123456Z',
    '2026-11-04T10:30:00+01:00': '2026-11-04T09:30:00.000000Z',
    '2026-11-04T00:15:00+05:45': '2026-11-03T18:30:00.000000Z',
    '2026-12-31T23:30:00.000001-23:59': '2027-01-01T23:29:00.000001Z',
    '2026-11-04T09:30:00-00:00': '2026-11-04T09:30:00.000000Z',
    '2028-02-29T00:00:00Z': '2028-02-29T00:00:00.000000Z',
    '0099-12-31T23:59:59-23:59': '0100-01-01T23:58:59.000000Z',
    '0000-02-29T00:00:00Z': '0000-02-29T00:00:00.000000Z',
    '2016-12-31T23:59:60Z': '2016-12-31T23:59:59.000000Z',
    '2017-01-01T00:59:60.25+01:00': '2016-12-31T23:59:59.250000Z',
  };
  for (const [text, utc] of Object.entries(table)) {
    const us = parseTimestamp(text);
    assert.equal(us === null ? null : formatTimestamp(us), utc, text);
  }
});

test('anything else is not a time', () => {
  const others = [
    '',
    'now',
    '2026-11-04',
    '09:30:00Z',
    '2026-11-04T09:30Z',
    '2026-11-04T09:30:00',
    '2026-11-04 09:30:00Z',
    ' 2026-11-04T09:30:00Z',
    '2026-11-04T09:30:00Z\n',
    '2026-11-04T09:30:00.Z',
    '2026-11-04T09:30:00,5Z',
    '2026-11-04T09:30:00+01',
    '2026-11-04T09:30:00+0100',
    '2026-11-04T09:30:00+24:00',
    '2026-11-04T09:30:00+01:60',
    '2026-11-04T09:30:00Z[UTC]',
    '2026-1-4T09:30:00Z',
    '20261104T093000Z',
    '+002026-11-04T09:30:00Z',
    '2026-00-04T09:30:00Z',
    '2026-13-04T09:30:00Z',
    '2026-11-00T09:30:00Z',
    '2026-11-31T09:30:00Z',
    '2027-02-29T09:30:00Z',
    '2026-11-04T24:00:00Z',
    '2026-11-04T09:60:00Z',
    '2026-11-04T09:30:60Z',
    '2026-11-04T09:30:61Z',
    '٢٠٢٦-11-04T09:30:00Z',
    '1762248600',
  ];
  for (const text of others) assert.equal(parseTimestamp(text), null, text);
});

test('every time that a reply shows is read back as the same microsecond', () => {
  const first = Date.UTC(2000, 0, 1) * 1000;
  const last = Date.UTC(2200, 0, 1) * 1000;
  fc.assert(
    fc.property(fc.integer({ min: first, max: last }), (us) => {
      assert.equal(parseTimestamp(formatTimestamp(us)), us);
    }),
  );
});

test('a time with an offset is read as the standard library reads it', () => {
  const pad = (value: number): string => String(value).padStart(2, '0');
  const milliseconds = fc.integer({ min: Date.UTC(2000, 0, 1), max: Date.UTC(2100, 0, 1) });
  const offset = fc.integer({ min: -1439, max: 1439 });
  fc.assert(
    fc.property(milliseconds, offset, (ms, minutes) => {
      const local = new Date(ms).toISOString().slice(0, -1);
      const size = Math.abs(minutes);
      const zone = `${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
      assert.equal(parseTimestamp(local + zone), Date.parse(local + zone) * 1000);
    }),
  );
});
