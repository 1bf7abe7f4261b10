import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  fieldNames,
  narrowNames,
  payloadNames,
  previewedNames,
  traceFields,
} from '../../src/core/trace-fields.ts';
import { draftBytes, draftTrace } from '../../src/core/trace.ts';

test('every field is either narrow or a payload, and keeps the order of the declaration', () => {
  const isPayload = new Set<string>(payloadNames);
  assert.deepEqual(
    fieldNames.filter((name) => !isPayload.has(name)),
    narrowNames,
  );
  assert.equal(narrowNames.length + payloadNames.length, fieldNames.length);
});

test('every payload has a bit of its own in the mask of compressed payloads', () => {
  const bits = payloadNames.map((name) => traceFields[name].zstdBit ?? 0);
  assert.deepEqual(bits, [1, 2, 4, 8], 'bits are stored, so they never change');
  for (const name of narrowNames) assert.equal(traceFields[name].zstdBit, undefined);
});

test('a draft has every field in the declared order; what was not sent is null', () => {
  const draft = draftTrace({ model: 'm' });
  assert.deepEqual(Object.keys(draft), fieldNames);
  const { model, status, ...others } = draft;
  assert.deepEqual([model, status], ['m', 'success']);
  assert.deepEqual([...new Set(Object.values(others))], [null]);
});

test('a draft ignores fields that are not declared', () => {
  const sent = { model: 'm', id: 'x', team_id: 'y', created_at: 'z', other: 1 };
  assert.deepEqual(Object.keys(draftTrace(sent)), fieldNames);
});

test('the status follows from the error message unless it was sent', () => {
  const table = [
    { sent: {}, status: 'success' },
    { sent: { error_message: '' }, status: 'success' },
    { sent: { error_message: 'timeout' }, status: 'error' },
    { sent: { error_message: 'timeout', status: 'success' }, status: 'success' },
    { sent: { status: 'error' }, status: 'error' },
    { sent: { status: null, error_message: 'timeout' }, status: 'error' },
  ] as const;
  for (const { sent, status } of table) {
    assert.equal(draftTrace({ model: 'm', ...sent }).status, status, JSON.stringify(sent));
  }
});

test('lone surrogates become U+FFFD and -0 becomes 0', () => {
  const draft = draftTrace({ model: 'a\uD800', input: '\uDC00b', prompt_tokens: -0, cost_usd: -0 });
  assert.deepEqual([draft.model, draft.input], ['a\uFFFD', '\uFFFDb']);
  assert.ok(Object.is(draft.prompt_tokens, 0) && Object.is(draft.cost_usd, 0));
});

test('a draft has started_at in microseconds and metadata as JSON', () => {
  const started_at = '1970-01-01T01:00:01.000002+01:00';
  const draft = draftTrace({ model: 'm', started_at, metadata: { b: '1', a: '2' } });
  assert.equal(draft.started_at, 1_000_002);
  assert.equal(draft.metadata, '{"b":"1","a":"2"}');
});

test('metadata is stored without lone surrogates in its values and without a __proto__ entry', () => {
  const metadata = JSON.parse('{"a":"\\udc00b","__proto__":"x"}') as Record<string, string>;
  assert.equal(draftTrace({ model: 'm', metadata }).metadata, '{"a":"\uFFFDb"}');
});

test('the memory of a draft grows with its payloads', () => {
  const empty = draftBytes(draftTrace({ model: 'm' }));
  const texts = { input: 'abc', output: 'de', error_message: 'f' };
  const full = draftTrace({ model: 'm', ...texts, metadata: { k: 'v' } });
  assert.equal(draftBytes(full) - empty, 6 + '{"k":"v"}'.length);
});

test('every part belongs to a count, and only metadata is not shortened in a preview', () => {
  const parts = fieldNames.filter((name) => traceFields[name].partOf !== undefined);
  assert.ok(parts.length >= 3);
  for (const name of parts) {
    const whole = fieldNames.find((other) => other === traceFields[name].partOf);
    assert.ok(whole !== undefined && traceFields[whole].kind === 'count', name);
  }
  assert.deepEqual(
    payloadNames.filter((name) => !previewedNames.includes(name)),
    ['metadata'],
  );
});
