import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  dayOf,
  formatDay,
  formatDayLabel,
  formatTimestamp,
  nextCreatedAt,
  openClock,
} from '../../src/core/clock.ts';
import { parseUuid, uuidBytes, uuidText, uuidV7 } from '../../src/core/uuid.ts';
import { us } from '../support/service.ts';

test('the system clock returns the system time and stays within its millisecond', () => {
  const clock = openClock({ kind: 'system' });
  for (let i = 0; i < 10_000; i++) {
    const beforeMs = Date.now();
    const nowUs = clock();
    const afterMs = Date.now();
    assert.ok(nowUs >= beforeMs * 1000 && nowUs < (afterMs + 1) * 1000);
    assert.ok(Number.isSafeInteger(nowUs));
  }
});

test('time follows the sequence, except after a clock jump of more than 5 s', () => {
  const now = us('2026-11-04T09:30:00Z');
  assert.equal(nextCreatedAt(now, 0), now);
  assert.equal(nextCreatedAt(now, now - 1), now);
  assert.equal(nextCreatedAt(now, now), now + 1);
  assert.equal(nextCreatedAt(now, now + 5_000_000), now + 5_000_001);
  assert.equal(nextCreatedAt(now, now + 5_000_001), now);
});

test('timestamps show microseconds and a Z', () => {
  assert.equal(formatTimestamp(us('2026-11-04T09:30:00Z') + 1), '2026-11-04T09:30:00.000001Z');
  assert.equal(
    formatTimestamp(us('2026-11-04T09:30:00.123Z') + 456),
    '2026-11-04T09:30:00.123456Z',
  );
  assert.equal(
    formatTimestamp(us('2026-12-31T23:59:59.999Z') + 999),
    '2026-12-31T23:59:59.999999Z',
  );
});

test('days change at midnight in UTC', () => {
  const midnight = us('2026-11-05T00:00:00Z');
  assert.equal(dayOf(midnight) - dayOf(midnight - 1), 1);
  assert.equal(formatDay(dayOf(midnight - 1)), '2026-11-04');
  for (
    let day = dayOf(us('1970-01-01T00:00:00Z'));
    day <= dayOf(us('2199-12-31T00:00:00Z'));
    day++
  ) {
    const date = new Date(day * 86_400_000);
    const [, dayOfMonth, month] = date.toUTCString().split(' ');
    assert.equal(formatDay(day), date.toISOString().slice(0, 10));
    assert.equal(formatDayLabel(day), `${month} ${Number(dayOfMonth)}`);
  }
  assert.equal(formatDayLabel(dayOf(midnight - 1)), 'Nov 4');
  assert.equal(formatDayLabel(dayOf(us('2024-02-29T12:00:00Z'))), 'Feb 29');
});

test('ids are UUIDs of version 7 that sort as their times do', () => {
  const anyUs = fc.integer({ min: us('2020-01-01T00:00:00Z'), max: us('2100-01-01T00:00:00Z') });
  fc.assert(
    fc.property(anyUs, fc.integer({ min: 1, max: 10_000 }), (at, later) => {
      const id = uuidV7(at);
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      assert.equal(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16), Math.floor(at / 1000));
      assert.ok(id.slice(0, 18) <= uuidV7(at + later).slice(0, 18));
      assert.equal(uuidText(uuidBytes(id)), id);
      assert.equal(parseUuid(id.toUpperCase()), id);
    }),
  );
});

test('two ids of one microsecond differ', () => {
  const at = us('2026-11-04T09:30:00Z');
  assert.equal(new Set(Array.from({ length: 20_000 }, () => uuidV7(at))).size, 20_000);
});

test('a text that is not a UUID is recognized', () => {
  for (const text of [
    '',
    'x',
    '0'.repeat(36),
    `${uuidV7(0)} `,
    `{${uuidV7(0)}}`,
    uuidV7(0).replaceAll('-', ''),
  ]) {
    assert.equal(parseUuid(text), null, text);
  }
});
