import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import type { TraceInput } from '../../src/core/trace-fields.ts';
import type { Trace } from '../../src/core/trace.ts';
import { traceJson } from '../../src/http/trace-json.ts';

const stamps = { id: 'i', teamId: 't', createdAtUs: Date.UTC(2026, 10, 4) * 1000 };

function shown(body: TraceInput, more: Partial<Trace> = {}): Record<string, unknown> {
  return JSON.parse(traceJson({ ...stamps, ...draftTrace(body), ...more })) as Record<
    string,
    unknown
  >;
}

const extra = {
  response_model: 'm-1',
  started_at: '2026-11-03T23:59:59.123456Z',
  environment: 'production',
  provider: 'openai',
  session_id: 's',
  run_id: 'r',
  cache_read_tokens: 0,
  cache_write_tokens: 1,
  reasoning_tokens: 2,
  ttft_ms: 0,
  error_type: 'timeout',
  metadata: { 'a"b': 'c\nd', __e: '' },
};

test('extra fields are shown if they were sent, in the form in which they were sent', () => {
  const json = shown({ model: 'm', ...extra });
  for (const [name, value] of Object.entries(extra)) assert.deepEqual(json[name], value, name);
});

test('extra fields that were not sent are left out', () => {
  const json = shown({ model: 'm' });
  for (const name of Object.keys(extra)) assert.ok(!(name in json), name);
  assert.deepEqual(Object.keys(json).slice(-2), ['user_identifier', 'created_at']);
});

test('started_at is shown in UTC with microseconds, whatever its offset was', () => {
  const { started_at } = shown({ model: 'm', started_at: '2026-11-04T01:00:00.5+05:45' });
  assert.equal(started_at, '2026-11-03T19:15:00.500000Z');
});

test('omitted metadata is left out, and damaged metadata is listed instead', () => {
  const draft = draftTrace({ model: 'm', metadata: { a: 'b' } });
  const omitted = traceJson({ ...stamps, ...draft }, new Set(['metadata'] as const));
  assert.ok(!omitted.includes('metadata'));
  const damaged = shown({ model: 'm' }, { metadata: null, damaged: ['metadata'] });
  assert.ok(!('metadata' in damaged));
  assert.deepEqual(damaged['damaged'], ['metadata']);
});
