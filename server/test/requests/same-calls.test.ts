import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import type { TraceInput } from '../../src/core/trace-fields.ts';
import { Failure } from '../../src/errors.ts';
import type { Call } from '../../src/http/protocols/call-draft.ts';
import { limits } from '../../src/limits.ts';
import type { CallIds } from '../../src/store/trace-writer.ts';
import { joinReports as join } from '../../src/http/protocols/same-calls.ts';

const joinReports = (calls: readonly Call[]) => join(calls, limits.bodyBytesMax);

interface Wishes extends Partial<Omit<Call, 'draft' | 'ids'> & CallIds> {
  draft?: Partial<TraceInput>;
}

/** A call that took from 1,000 to 2,000 µs, with the same tokens as all others. */
function report({
  span = null,
  outerSpan = null,
  response = null,
  emitter = 'sdk',
  draft: fields,
  ...rest
}: Wishes): Call {
  const draft = draftTrace({ model: 'm', prompt_tokens: 10, completion_tokens: 5, ...fields });
  const isError = draft.status === 'error';
  return {
    draft,
    ids: { span, outerSpan, response, emitter, isError },
    app: 1,
    startUs: 1000,
    endUs: 2000,
    ...rest,
  };
}

const framework = { emitter: 'framework', startUs: 900, endUs: 2100 };

test('the texts of the outer report and the tokens of the inner one are stored', () => {
  const calls = joinReports([
    report({ span: 'a', outerSpan: 'b', response: 'r', draft: { ttft_ms: 7 } }),
    report({
      ...framework,
      span: 'b',
      draft: { completion_tokens: 6, output: 'Hello', session_id: 's' },
    }),
  ]);
  assert.equal(calls.length, 1);
  const [{ draft, ids } = assert.fail()] = calls;
  assert.deepEqual(
    [draft.completion_tokens, draft.output, draft.session_id, draft.ttft_ms],
    [5, 'Hello', 's', 7],
  );
  assert.deepEqual(
    ids.map(({ span }) => span),
    ['a', 'b'],
    'it is recognized by the ids of both',
  );
});

test('reports without a common id are joined only if they agree', () => {
  const inner = report({ span: 'a' });
  const agreeing = report({ ...framework, span: 'b' });
  assert.equal(joinReports([inner, agreeing]).length, 1);
  const others: Readonly<Record<string, Wishes>> = {
    'another model': { draft: { model: 'other' } },
    'other tokens': { draft: { prompt_tokens: 11 } },
    'another outcome': { draft: { status: 'error' } },
    'another app': { app: 2 },
    'another time': { startUs: 3000, endUs: 4000 },
    'the same emitter': { emitter: 'sdk' },
  };
  for (const [what, other] of Object.entries(others)) {
    assert.equal(
      joinReports([inner, report({ ...framework, span: 'b', ...other })]).length,
      2,
      what,
    );
  }
});

test('without tokens, one report must be within the other', () => {
  const none = { prompt_tokens: null, completion_tokens: null };
  const inner = report({ span: 'a', draft: none });
  const around = report({ ...framework, span: 'b', draft: none });
  const overlapping = report({ ...framework, span: 'b', draft: none, startUs: 1500 });
  assert.equal(joinReports([inner, around]).length, 1);
  assert.equal(joinReports([inner, overlapping]).length, 2);
});

test('a failed attempt and its retry are two calls, also if a framework reports only the success', () => {
  const failed = { status: 'error', prompt_tokens: null, completion_tokens: null } as const;
  const calls = joinReports([
    report({ span: 'a1', outerSpan: 'b', draft: failed, endUs: 1400 }),
    report({ span: 'a2', outerSpan: 'b', startUs: 1500 }),
    report({ ...framework, span: 'b', draft: { output: 'Hello' } }),
  ]);
  assert.deepEqual(
    calls.map(({ draft: { status, output } }) => [status, output]),
    [
      ['error', null],
      ['success', 'Hello'],
    ],
  );
});

test('many calls inside of one agent are as many calls', () => {
  const calls = Array.from({ length: 50 }, (_, i) => report({ span: `a${i}`, outerSpan: 'agent' }));
  assert.equal(joinReports(calls).length, 50);
  const doubled = calls.flatMap((call, i) => [
    call,
    report({ ...framework, span: `b${i}`, outerSpan: 'agent' }),
  ]);
  assert.equal(joinReports(doubled).length, 50, 'each was reported by two emitters');
});

test('thousands of calls at once are joined with their outer reports', () => {
  const count = 2000;
  const outer = Array.from({ length: count }, (_, i) =>
    report({ span: `b${i}`, emitter: 'framework', startUs: 1 + i, endUs: 1_000_000 }),
  );
  const inner = outer.map((_, i) => report({ span: `a${i}`, startUs: count + i, endUs: 900_000 }));
  // A third emitter has reported only one call, so no call is known to be complete.
  const other = report({ span: 'c', emitter: 'other', startUs: 2_000_000, endUs: 2_000_001 });
  for (const reports of [
    [...outer, ...inner, other],
    [other, ...inner.toReversed(), ...outer],
  ]) {
    const calls = joinReports(reports);
    assert.equal(calls.length, count + 1);
    assert.ok(calls.every(({ ids }) => ids.length <= 2));
  }
});

test('a report is compared with the nearest ones of many that it is not the same as', () => {
  const none = { prompt_tokens: null, completion_tokens: null };
  const outer = Array.from({ length: 1000 }, (_, i) =>
    report({ span: `b${i}`, emitter: `e${i % 20}`, draft: none, startUs: 1 + i, endUs: 5000 + i }),
  );
  // It is only within the last of them.
  const inner = report({ span: 'a', draft: none, startUs: 1000, endUs: 5999 });
  const calls = joinReports([inner, ...outer]);
  assert.equal(calls.length, 1000);
  const joined = calls.find(({ ids }) => ids.length > 1);
  assert.deepEqual(joined?.ids.map(({ span }) => span).sort(), ['a', 'b999']);
});

test('a request that reports one call more than 100 times is refused', () => {
  const ways: Readonly<Record<string, (i: number) => Wishes>> = {
    'the same span': () => ({ span: 'a' }),
    'the same response': (i) => ({ span: `a${i}`, response: 'r' }),
    'each directly inside of the one before': (i) => {
      return { span: `a${i}`, outerSpan: `a${i - 1}`, emitter: `e${i}` };
    },
  };
  for (const [way, wishesOf] of Object.entries(ways)) {
    const reports = Array.from({ length: 101 }, (_, i) => report(wishesOf(i)));
    assert.equal(joinReports(reports.slice(0, 100)).length, 1, way);
    assert.throws(
      () => joinReports(reports),
      (error) =>
        error instanceof Failure &&
        error.code === 'body_too_large' &&
        error.message === 'One call is reported more than 100 times in this request.',
      way,
    );
  }
});
