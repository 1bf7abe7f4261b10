import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { draftTrace } from '../../src/core/trace.ts';
import type { Trace, TraceDraft } from '../../src/core/trace.ts';
import { Failure } from '../../src/errors.ts';
import { openGroupCommit } from '../../src/ingest/group-commit.ts';
import type { Appended } from '../../src/ingest/group-commit.ts';
import type { TraceWrite, TraceWriter, WriteOutcome } from '../../src/store/store.ts';

const bounds = { queueRowsMax: 10, queueBytesMax: 100_000 };

/** A writer that answers when the test says so. */
function heldWriter() {
  const calls: {
    writes: readonly TraceWrite[];
    answer(outcomes: WriteOutcome[]): void;
    break(error: Error): void;
  }[] = [];
  const writer: TraceWriter = {
    append(writes) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly WriteOutcome[]>();
      calls.push({ writes, answer: resolve, break: reject });
      return promise;
    },
  };
  return { writer, calls };
}

const draft = (model: string, input: string | null = null): TraceDraft =>
  draftTrace({ model, input });
const stored = (write: TraceWrite): WriteOutcome => ({
  kind: 'stored',
  stamps: write.drafts.map((_, i) => ({ id: `id-${i}`, createdAtUs: i })),
});
const tracesOf = (appended: Appended): Trace[] =>
  appended.kind === 'recorded' ? appended.traces : assert.fail(appended.kind);
const codeOf = (error: unknown): string => (error instanceof Failure ? error.code : String(error));

test('what arrives in one turn goes to the store together, and nothing waits for a timer', async () => {
  const { writer, calls } = heldWriter();
  const commits = openGroupCommit(writer, bounds);
  const promises = ['a', 'b', 'c'].map((model) => commits.append('t', [draft(model)]));
  await nextTurn();
  assert.deepEqual(
    calls.map(({ writes }) => writes.length),
    [3],
  );
  // A later arrival does not wait for the first commit.
  promises.push(commits.append('t', [draft('d')]));
  await nextTurn();
  assert.deepEqual(
    calls.map(({ writes }) => writes.length),
    [3, 1],
  );
  for (const call of calls) call.answer(call.writes.map(stored));
  assert.deepEqual(
    (await Promise.all(promises)).map((appended) => tracesOf(appended)[0]?.model),
    ['a', 'b', 'c', 'd'],
  );
});

test('many writes of one turn go out in small chunks, in order', async () => {
  const { writer, calls } = heldWriter();
  const commits = openGroupCommit(writer, { ...bounds, queueRowsMax: 100 });
  const promises = Array.from({ length: 20 }, (_, i) => commits.append('t', [draft(`m${i}`)]));
  // Full chunks do not wait for the end of the turn.
  assert.deepEqual(
    calls.map(({ writes }) => writes.length),
    [8, 8],
  );
  await nextTurn();
  assert.deepEqual(
    calls.map(({ writes }) => writes.length),
    [8, 8, 4],
  );
  await nextTurn();
  for (const call of calls) call.answer(call.writes.map(stored));
  const models = (await Promise.all(promises)).map((appended) => tracesOf(appended)[0]?.model);
  assert.deepEqual(
    models,
    Array.from({ length: 20 }, (_, i) => `m${i}`),
  );
  assert.equal(calls.length, 3, 'an empty chunk was sent');
});

test('a refused write fails exactly its caller', async () => {
  const { writer, calls } = heldWriter();
  const commits = openGroupCommit(writer, bounds);
  const settled = Promise.allSettled(
    ['a', 'bad', 'c'].map((model) => commits.append('t', [draft(model)])),
  );
  await nextTurn();
  calls[0]?.answer(
    calls[0].writes.map((write) =>
      write.drafts[0]?.model === 'bad'
        ? { kind: 'refused', code: 'disk_full', reason: 'full' }
        : stored(write),
    ),
  );
  const results = await settled;
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.equal(codeOf((results[1] as PromiseRejectedResult).reason), 'disk_full');
});

test('a store that breaks fails its callers and nobody after them', async () => {
  const { writer, calls } = heldWriter();
  const commits = openGroupCommit(writer, bounds);
  const lost = commits.append('t', [draft('a')]);
  await nextTurn();
  calls[0]?.break(new Error('gone'));
  await assert.rejects(lost, (error) => codeOf(error) === 'internal');
  const next = commits.append('t', [draft('b')]);
  await nextTurn();
  calls[1]?.answer(calls[1].writes.map(stored));
  assert.equal(tracesOf(await next).length, 1);
});

test('past the bound of rows a write is refused at once, and accepted again when there is room', async () => {
  const { writer, calls } = heldWriter();
  const commits = openGroupCommit(writer, bounds);
  const waiting = Array.from({ length: 10 }, () => commits.append('t', [draft('a')]));
  await assert.rejects(
    commits.append('t', [draft('b')]),
    (error) => codeOf(error) === 'queue_full',
  );
  await nextTurn();
  for (const call of calls) call.answer(call.writes.map(stored));
  await Promise.all(waiting);
  const next = commits.append('t', [draft('c')]);
  await nextTurn();
  calls.at(-1)?.answer([stored(calls.at(-1)?.writes[0] ?? assert.fail())]);
  assert.equal(tracesOf(await next).length, 1);
});

test('past the bound of bytes a write is refused at once', async () => {
  const { writer, calls } = heldWriter();
  const commits = openGroupCommit(writer, bounds);
  const waiting = commits.append('t', [draft('a', 'x'.repeat(90_000))]);
  await assert.rejects(
    commits.append('t', [draft('b', 'x'.repeat(20_000))]),
    (error) => codeOf(error) === 'queue_full',
  );
  await nextTurn();
  calls[0]?.answer(calls[0].writes.map(stored));
  await waiting;
});

test('drain resolves when nothing waits any more, and not before', async () => {
  const { writer, calls } = heldWriter();
  const commits = openGroupCommit(writer, bounds);
  await commits.drain();
  const waiting = commits.append('t', [draft('a')]);
  let isDrained = false;
  const drained = commits.drain().then(() => (isDrained = true));
  await nextTurn();
  await nextTurn();
  assert.equal(isDrained, false);
  calls[0]?.answer(calls[0].writes.map(stored));
  await Promise.all([waiting, drained]);
  assert.equal(isDrained, true);
});
