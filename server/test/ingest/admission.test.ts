import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { draftTrace } from '../../src/core/trace.ts';
import type { Trace } from '../../src/core/trace.ts';
import type { TraceDraft } from '../../src/core/trace-fields.ts';
import { Failure } from '../../src/errors.ts';
import { Admission } from '../../src/ingest/admission.ts';
import type { Appended } from '../../src/ingest/admission.ts';
import { smallWorkMax } from '../../src/ingest/store-room.ts';
import { WaitingBudget } from '../../src/ingest/waiting-budget.ts';
import { limits } from '../../src/limits.ts';
import { manualTime } from '../support/manual-time.ts';
import type { TraceWrite, TraceWriter, WriteOutcome } from '../../src/store/trace-writer.ts';

const bounds = { queueRowsMax: 10, queueBytesMax: 100_000 };
/** A single team may fill half of the queue. */
const teamRowsMax = bounds.queueRowsMax / 2;

/** A writer that answers when the test says so. */
function heldWriter() {
  const calls: {
    writes: readonly TraceWrite[];
    moreFollow: boolean | undefined;
    tell(at: number, outcome: WriteOutcome): void;
    answer(outcomes: WriteOutcome[]): void;
    break(error: Error): void;
  }[] = [];
  const writer: TraceWriter = {
    append(writes, moreFollow, tell = () => {}) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly WriteOutcome[]>();
      calls.push({ writes, moreFollow, tell, answer: resolve, break: reject });
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

test('a write that the store reports early is answered immediately, and only once', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(bounds));
  const [slow, fast] = ['slow', 'fast'].map((team) => admission.append(team, [draft(team)]));
  await nextTurn();
  const [call] = calls;
  assert.ok(call && slow && fast);
  const [first, second] = call.writes.map(stored);
  assert.ok(first && second);
  call.tell(1, second);
  assert.equal(tracesOf(await fast)[0]?.model, 'fast');
  let isDrained = false;
  const drained = admission.drain().then(() => (isDrained = true));
  await nextTurn();
  assert.equal(isDrained, false);
  call.answer([first, second]);
  assert.equal(tracesOf(await slow)[0]?.model, 'slow');
  await drained;
  // The row that was reported early counts once: the limit is unchanged.
  const full = Array.from({ length: teamRowsMax }, () => admission.append('t', [draft('m')]));
  await assert.rejects(
    admission.append('t', [draft('m')]),
    (error) => codeOf(error) === 'queue_full',
  );
  await nextTurn();
  for (const { writes, answer } of calls.slice(1)) answer(writes.map(stored));
  await Promise.all(full);
});

test('what arrives in one turn goes to the store together, and nothing waits for a timer', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(bounds));
  const promises = ['a', 'b', 'c'].map((model) => admission.append('t', [draft(model)]));
  await nextTurn();
  assert.deepEqual(
    calls.map(({ writes }) => writes.length),
    [3],
  );
  // A later arrival does not wait for the first commit.
  promises.push(admission.append('t', [draft('d')]));
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
  const admission = new Admission(writer, new WaitingBudget({ ...bounds, queueRowsMax: 100 }));
  const promises = Array.from({ length: 36 }, (_, i) => admission.append('t', [draft(`m${i}`)]));
  // Full chunks do not wait for the end of the turn.
  assert.deepEqual(
    calls.map(({ writes }) => writes.length),
    [16, 16],
  );
  await nextTurn();
  assert.deepEqual(
    calls.map(({ writes }) => writes.length),
    [16, 16, 4],
  );
  await nextTurn();
  for (const call of calls) call.answer(call.writes.map(stored));
  const models = (await Promise.all(promises)).map((appended) => tracesOf(appended)[0]?.model);
  assert.deepEqual(
    models,
    Array.from({ length: 36 }, (_, i) => `m${i}`),
  );
  assert.equal(calls.length, 3, 'an empty chunk was sent');
});

/** Traces that show which client wrote them. */
const drafts = (count: number, name = 'm'): TraceDraft[] =>
  Array.from({ length: count }, (_, i) => draft(`${name}.${i}`));
const roomy = { queueRowsMax: 100_000, queueBytesMax: 100_000_000 };
const rowsOf = ({ writes }: { writes: readonly TraceWrite[] }): number =>
  writes.reduce((sum, write) => sum + write.drafts.length, 0);

test('a chunk is full by its traces, not by its callers', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(roomy));
  for (const count of [6, 6, 6, 1, 1000, 1]) void admission.append('t', drafts(count));
  assert.deepEqual(
    calls.map(({ writes }) => writes.map((write) => write.drafts.length)),
    [
      [6, 6, 6],
      [1, 1000],
    ],
  );
  await nextTurn();
  assert.deepEqual(calls.map(rowsOf), [18, 1001, 1]);
});

test('a batch is never cut in two, and one alone goes with the turn', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(roomy));
  void admission.append('t', drafts(1000));
  assert.equal(calls.length, 0);
  await nextTurn();
  assert.deepEqual(
    calls.map(({ writes, moreFollow }) => [writes.length, writes[0]?.drafts.length, moreFollow]),
    [[1, 1000, false]],
  );
});

test('during a turn the writer is called with moreFollow, and released after 48 traces', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(roomy));
  for (let i = 0; i < 61; i++) void admission.append('t', drafts(1));
  await nextTurn();
  assert.equal(limits.turnRowsMax, 48);
  assert.deepEqual(
    calls.map((call) => [rowsOf(call), call.moreFollow]),
    [
      [16, true],
      [16, true],
      [16, false],
      [13, false],
    ],
  );
  // The next turn counts anew.
  for (let i = 0; i < 17; i++) void admission.append('t', drafts(1));
  await nextTurn();
  assert.deepEqual(
    calls.slice(4).map((call) => [rowsOf(call), call.moreFollow]),
    [
      [16, true],
      [1, false],
    ],
  );
});

test('whatever comes in a turn, its last call says that no more follow, and every write goes once, in order', async () => {
  const size = fc.oneof(fc.integer({ min: 1, max: 10 }), fc.constantFrom(1, 16, 48, 49, 1000));
  const turns = fc.array(fc.array(size, { maxLength: 40 }), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(turns, async (sizes) => {
      const { writer, calls } = heldWriter();
      const admission = new Admission(writer, new WaitingBudget(roomy));
      const promises: Promise<Appended>[] = [];
      for (const [turn, list] of sizes.entries()) {
        const before = calls.length;
        for (const [i, count] of list.entries()) {
          promises.push(admission.append('t', drafts(count, `${turn}.${i}`)));
        }
        await nextTurn();
        assert.equal(calls.slice(before).at(-1)?.moreFollow ?? false, false);
      }
      // What the store has no room for follows when others are answered, in whichever order that happens.
      for (let answered = 0; answered < calls.length;) {
        const open = calls.slice(answered).toReversed();
        answered = calls.length;
        for (const call of open) call.answer(call.writes.map(stored));
        // One turn in which the answers arrive, and one for what they make room for.
        await nextTurn();
        await nextTurn();
        assert.equal(calls.at(-1)?.moreFollow, false);
      }
      for (const { writes } of calls) {
        assert.ok(writes.length > 0, 'an empty chunk was sent');
        assert.ok(rowsOf({ writes: writes.slice(0, -1) }) < limits.chunkRowsMax);
      }
      // Small writes may pass large ones.
      for (const isSmall of [true, false]) {
        const ofKind = (rows: number): boolean => rows <= smallWorkMax === isSmall;
        assert.deepEqual(
          calls
            .flatMap(({ writes }) => writes.map((write) => write.drafts))
            .filter(({ length }) => ofKind(length))
            .map(([first]) => first?.model),
          sizes.flatMap((list, turn) =>
            list.flatMap((rows, i) => (ofKind(rows) ? [`${turn}.${i}.0`] : [])),
          ),
        );
      }
      const lengths = (await Promise.all(promises)).map((appended) => tracesOf(appended).length);
      assert.deepEqual(lengths, sizes.flat());
      await admission.drain();
    }),
    { numRuns: 200 },
  );
});

test('a repeated idempotent request returns its stored traces, and frees its share like any other', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(bounds));
  const request = { keyHash: 'k', bodyHash: 'b', rejected: '[]' };
  const replay = { kind: 'replayed', firstSeq: 7, count: 9, rejected: '[1]' } as const;
  const first = admission.append('t', drafts(9), request);
  await nextTurn();
  assert.deepEqual(calls[0]?.writes[0]?.request, request);
  await assert.rejects(
    admission.append('t', drafts(2)),
    (error) => codeOf(error) === 'queue_full',
    'it takes its place while it waits',
  );
  calls[0]?.answer([replay]);
  assert.deepEqual(await first, replay);
  await admission.drain();
  const next = admission.append('t', drafts(10), null);
  await nextTurn();
  assert.equal(calls[1]?.writes[0]?.request ?? null, null);
  calls[1]?.answer(calls[1].writes.map(stored));
  assert.equal(tracesOf(await next).length, 10);
});

test('in one chunk each caller gets its own outcome: stored, replayed or failed', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(bounds));
  const settled = Promise.allSettled(
    ['a', 'b', 'c'].map((name) => admission.append('t', [draft(name)])),
  );
  await nextTurn();
  const [a, , c] = calls[0]?.writes ?? [];
  assert.ok(a && c && calls.length === 1);
  calls[0]?.answer([
    { kind: 'failed', code: 'idempotency_key_reused', reason: 'another body' },
    { kind: 'replayed', firstSeq: 1, count: 1, rejected: null },
    stored(c),
  ]);
  const [refused, replayed, recorded] = await settled;
  assert.equal(refused?.status === 'rejected' && codeOf(refused.reason), 'idempotency_key_reused');
  assert.equal(replayed?.status === 'fulfilled' && replayed.value.kind, 'replayed');
  assert.equal(recorded?.status === 'fulfilled' && tracesOf(recorded.value)[0]?.model, 'c');
});

test('a failed write fails only its caller', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(bounds));
  const settled = Promise.allSettled(
    ['a', 'bad', 'c'].map((model) => admission.append('t', [draft(model)])),
  );
  await nextTurn();
  calls[0]?.answer(
    calls[0].writes.map((write) =>
      write.drafts[0]?.model === 'bad'
        ? { kind: 'failed', code: 'disk_full', reason: 'full' }
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

test('a store that breaks fails its callers and no later ones', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(bounds));
  const lost = admission.append('t', [draft('a')]);
  await nextTurn();
  calls[0]?.break(new Error('gone'));
  await assert.rejects(lost, (error) => codeOf(error) === 'internal');
  const next = admission.append('t', [draft('b')]);
  await nextTurn();
  calls[1]?.answer(calls[1].writes.map(stored));
  assert.equal(tracesOf(await next).length, 1);
});

test('beyond its share of the rows a team is refused immediately, other teams are not, and it is accepted again when rows are free', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(bounds));
  const waiting = Array.from({ length: teamRowsMax }, () => admission.append('t', [draft('a')]));
  await assert.rejects(
    admission.append('t', [draft('b')]),
    (error) => codeOf(error) === 'queue_full',
  );
  // The backlog of one team leaves room for others.
  waiting.push(admission.append('other', [draft('a'), draft('b')]));
  await nextTurn();
  for (const call of calls) call.answer(call.writes.map(stored));
  await Promise.all(waiting);
  const next = admission.append('t', [draft('c')]);
  await nextTurn();
  calls.at(-1)?.answer([stored(calls.at(-1)?.writes[0] ?? assert.fail())]);
  assert.equal(tracesOf(await next).length, 1);
});

test('beyond the limit of bytes a write is refused immediately', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(bounds));
  const waiting = admission.append('t', [draft('a', 'x'.repeat(90_000))]);
  await assert.rejects(
    admission.append('t', [draft('b', 'x'.repeat(20_000))]),
    (error) => codeOf(error) === 'queue_full',
  );
  // Nothing of the refused one is counted.
  await assert.rejects(
    admission.append('other', [draft('b', 'x'.repeat(20_000))]),
    (error) => codeOf(error) === 'queue_full',
  );
  await nextTurn();
  calls[0]?.answer(calls[0].writes.map(stored));
  await waiting;
});

test('drain resolves when nothing waits any more, and not before', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(bounds));
  await admission.drain();
  const waiting = admission.append('t', [draft('a')]);
  let isDrained = false;
  const drained = admission.drain().then(() => (isDrained = true));
  await nextTurn();
  await nextTurn();
  assert.equal(isDrained, false);
  calls[0]?.answer(calls[0].writes.map(stored));
  await Promise.all([waiting, drained]);
  assert.equal(isDrained, true);
});

/** Answers everything that is at the store, and waits for what follows. */
async function answerAll(calls: ReturnType<typeof heldWriter>['calls'], from: number) {
  for (const call of calls.slice(from)) call.answer(call.writes.map(stored));
  await nextTurn();
  await nextTurn();
}

test('a team with large writes does not keep the small ones of another waiting', async (t) => {
  const time = manualTime(t);
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(roomy));
  const flood = Array.from({ length: 20 }, (_, i) =>
    admission.append('flood', drafts(1_000, `${i}`)),
  );
  await nextTurn();
  const atStore = calls.reduce((sum, call) => sum + rowsOf(call), 0);
  assert.equal(atStore, 1_000, 'the store has one large write at a time');
  const small = admission.append('honest', [draft('small')]);
  await nextTurn();
  assert.equal(calls.at(-1)?.writes[0]?.drafts[0]?.model, 'small', 'it goes to the store at once');
  calls.at(-1)?.answer([stored(calls.at(-1)?.writes[0] ?? assert.fail())]);
  assert.equal(tracesOf(await small).length, 1);
  for (let turn = 0; turn < 40; turn++) {
    for (const call of calls) call.answer(call.writes.map(stored));
    // Large writes pause between each other.
    await time.pass(200);
  }
  assert.equal((await Promise.all(flood)).length, 20);
  await admission.drain();
});

test('large writes of several teams go to the store in turns', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(roomy));
  const all = ['a', 'b'].flatMap((team) =>
    Array.from({ length: 10 }, () => admission.append(team, drafts(1_000, team))),
  );
  for (let answered = 0; answered < calls.length || answered === 0;) {
    await nextTurn();
    const from = answered;
    answered = calls.length;
    await answerAll(calls, from);
  }
  await Promise.all(all);
  const order = calls.flatMap(({ writes }) => writes.map(({ teamId }) => teamId)).join('');
  assert.match(order, /^a?(ab|ba)+b*$/, order);
});

test('a request that holds room is not refused later, and gives it back at its end', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(bounds));
  const reservation = admission.reserve('t', teamRowsMax, 100);
  await assert.rejects(
    admission.append('t', [draft('m')]),
    (error) => codeOf(error) === 'queue_full',
  );
  const parts = [0, 1, 2].map(() =>
    admission.append('t', drafts(teamRowsMax), null, { reservation }),
  );
  await nextTurn();
  await answerAll(calls, 0);
  assert.equal((await Promise.all(parts)).length, 3);
  assert.throws(
    () => admission.reserve('t', teamRowsMax + 1, 100),
    (error) => codeOf(error) === 'queue_full',
  );
  reservation.release();
  await admission.drain();
  admission.reserve('t', teamRowsMax, 100).release();
});

test('after a large write the next one waits longer than it took, only if another team sends small ones', async (t) => {
  const time = manualTime(t);
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(roomy));
  const large = () => admission.append('large', drafts(1_000));
  const answerLast = async (afterMs: number): Promise<void> => {
    await time.pass(afterMs);
    const call = calls.at(-1) ?? assert.fail();
    call.answer(call.writes.map(stored));
    await time.pass(0);
    await time.pass(0);
  };
  const own = admission.append('large', [draft('its own')]);
  await time.pass(0);
  await answerLast(1);
  await own;
  const first = [large(), large()];
  await time.pass(0);
  await answerLast(20);
  assert.equal(calls.length, 3, 'alone, its next write follows at once');
  const small = admission.append('small', [draft('small')]);
  await time.pass(0);
  await answerLast(1);
  await small;
  assert.equal(calls.length, 4);
  const more = large();
  await time.pass(30);
  calls[2]?.answer(calls[2].writes.map(stored));
  await Promise.all(first);
  await time.pass(0);
  assert.equal(calls.length, 4, 'the next one waits');
  await time.pass(20);
  assert.equal(calls.length, 4, 'as long as the one before took');
  await time.pass(100);
  await time.pass(0);
  assert.equal(calls.length, 5, 'but not forever');
  await answerLast(1);
  assert.equal(tracesOf(await more).length, 1_000);
  await admission.drain();
});

test('a small write does not wait for the large ones of its own team', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(roomy));
  void admission.append('t', drafts(1_000));
  void admission.append('t', drafts(1_000));
  await nextTurn();
  assert.equal(calls.length, 1, 'the second one waits');
  void admission.append('t', [draft('small')]);
  await nextTurn();
  assert.equal(calls.at(-1)?.writes[0]?.drafts[0]?.model, 'small');
});

test('a call with very many reports is a large write', async () => {
  const { writer, calls } = heldWriter();
  const admission = new Admission(writer, new WaitingBudget(roomy));
  const ids = { span: null, outerSpan: null, response: null, emitter: 'e', isError: false };
  const ofCall = [Array.from({ length: 10_000 }, () => ids)];
  for (let i = 0; i < 3; i++) void admission.append('t', [draft('m')], null, { calls: ofCall });
  await nextTurn();
  assert.equal(calls.length, 1, 'the others wait');
});

test('a writer that throws fails its callers', async () => {
  const writer: TraceWriter = {
    append() {
      throw new Error('planned by this test');
    },
  };
  const admission = new Admission(writer, new WaitingBudget(bounds));
  await assert.rejects(
    admission.append('t', [draft('m')]),
    (error) => codeOf(error) === 'internal',
  );
  await admission.drain();
});

test('large writes go on after a pause, even if its timer fires a little early', async () => {
  // Real time: timers are cut to whole milliseconds, so they often fire before the exact end of the pause.
  const writer: TraceWriter = {
    append: async (writes) => {
      await sleep(0);
      return writes.map(stored);
    },
  };
  const admission = new Admission(writer, new WaitingBudget(roomy));
  for (let round = 0; round < 50; round++) {
    await admission.append('small', [draft('small')]);
    await Promise.all([0, 1].map(() => admission.append('large', drafts(1_000))));
  }
});
