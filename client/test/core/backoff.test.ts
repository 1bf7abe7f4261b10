import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  mayPass,
  parseRetryAfter,
  pauseMs,
  untilTooOld,
  whileWaitedFor,
} from '../../src/backoff.ts';
import { TraceTallyError } from '../../src/errors.ts';

const settings = {
  retryDelayMs: 100,
  retryDelayMaxMs: 1_000,
  maxRetries: 3,
  maxRetryAgeMs: 60_000,
};

function failed(status: number | null, code = 'x', retryAfterMs: number | null = null) {
  return new TraceTallyError({ status, code, detail: 'd', retryAfterMs });
}

test('Retry-After is parsed as seconds or as a date, and is never negative', () => {
  const now = Date.parse('2026-11-15T12:00:00Z');
  const cases: [string | null, number | null][] = [
    ['0', 0],
    ['7', 7_000],
    [' 120 ', 120_000],
    ['Sun, 15 Nov 2026 12:00:30 GMT', 30_000],
    ['Sun, 15 Nov 2026 11:00:00 GMT', 0],
    ['-5', null],
    ['1.5', null],
    ['soon', null],
    ['', null],
    [null, null],
  ];
  for (const [value, expected] of cases)
    assert.equal(parseRetryAfter(value, now), expected, value ?? '');
});

test('retry delays are random below a bound that doubles up to its maximum', () => {
  const bounds = [0, 1, 2, 3, 4, 50].map((retries) => pauseMs(retries, null, settings, () => 1));
  assert.deepEqual(bounds, [100, 200, 400, 800, 1_000, 1_000]);
  assert.equal(
    pauseMs(4, null, settings, () => 0),
    0,
  );
  const drawn = Array.from({ length: 200 }, () => pauseMs(4, null, settings));
  assert.ok(Math.min(...drawn) < 200 && Math.max(...drawn) > 800, 'full jitter');
});

test('a retry delay is never shorter than Retry-After', () => {
  assert.equal(
    pauseMs(0, 5_000, settings, () => 0),
    5_000,
  );
  assert.equal(
    pauseMs(9, 5_000, settings, () => 1),
    5_100,
  );
});

test('only temporary failures are retried', () => {
  const passing = [408, 429, 500, 502, 503, 504, 507];
  const final = [301, 400, 401, 403, 404, 405, 413, 415, 422, 431, 501];
  for (const status of passing) assert.ok(mayPass(failed(status)), String(status));
  for (const status of final) assert.ok(!mayPass(failed(status)), String(status));
  assert.ok(mayPass(failed(null, 'network_error')) && mayPass(failed(null, 'no_reply')));
  assert.ok(!mayPass(failed(null, 'aborted')));
});

test('an awaited call is retried a few times and does not wait for a long Retry-After', () => {
  const rule = whileWaitedFor(settings);
  const error = failed(503);
  assert.notEqual(rule({ error, retries: 2, ageMs: 1e9 }), null);
  assert.equal(rule({ error, retries: 3, ageMs: 0 }), null);
  assert.equal(rule({ error: failed(503, 'x', 1_001), retries: 0, ageMs: 0 }), null);
  assert.notEqual(rule({ error: failed(503, 'x', 1_000), retries: 0, ageMs: 0 }), null);
});

test('a batch is retried until its maximum age, with the last attempt at that age', () => {
  const rule = untilTooOld(settings);
  const ask = failed(503, 'x', 3_600_000);
  assert.notEqual(rule({ error: failed(503), retries: 10_000, ageMs: 59_999 }), null);
  assert.equal(rule({ error: failed(503), retries: 1, ageMs: 60_000 }), null);
  assert.equal(rule({ error: ask, retries: 0, ageMs: 20_000 }), 40_000);
});

test('a batch that causes a 500 does not block the others for long', () => {
  const rule = untilTooOld(settings);
  assert.notEqual(rule({ error: failed(500), retries: 2, ageMs: 0 }), null);
  assert.equal(rule({ error: failed(500), retries: 3, ageMs: 0 }), null);
});
