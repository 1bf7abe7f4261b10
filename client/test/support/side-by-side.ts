import assert from 'node:assert/strict';
import type { TraceInput } from '../../src/api-types.ts';
import type { Labels, Recorder } from '../../src/recorder.ts';
import type { FakeProvider, ProviderRequest } from './fake-provider.ts';
import { memoryRecorder } from './memory-recorder.ts';
import type { MemoryRecorder } from './memory-recorder.ts';

/** What came of using a client: a value, or an error with all that tells it apart. */
export type Outcome =
  | { value: unknown }
  | { error: { type: unknown; name: string; message: string; fields: object } };

export async function outcomeOf(use: () => Promise<unknown>): Promise<Outcome> {
  try {
    return { value: await use() };
  } catch (thrown) {
    const error = thrown as Error;
    const { constructor: type, name, message } = error;
    // The cause differs in its stack.
    const { headers, cause: _cause, ...fields } = Object.fromEntries(Object.entries(error));
    const entries = headers instanceof Headers ? [...headers] : headers;
    return { error: { type, name, message, fields: { ...fields, headers: entries } } };
  }
}

export interface Pair<C> {
  /** Uses the bare client and the wrapped one in the same way, and demands that both see the same. */
  same(traceCount: number, use: (client: C) => Promise<unknown>): Promise<Compared>;
  recorder: MemoryRecorder;
  bare: C;
  wrapped: C;
}

export interface Compared {
  outcome: Outcome;
  /** What the wrapped client recorded. */
  traces: TraceInput[];
  requests: { bare: ProviderRequest[]; wrapped: ProviderRequest[] };
}

type Wrap<C> = (recorder: Recorder, client: C, labels: Labels) => C;

/** Headers that say which attempt or connection it was. */
const passing = ['host', 'connection', 'content-length'];

export function pairOf<C>(
  fake: FakeProvider,
  make: () => C,
  wrap: Wrap<C>,
  labels: Labels = { feature: 'tests', user: 'user-1' },
): Pair<C> {
  const recorder = memoryRecorder();
  const bare = make();
  const wrapped = wrap(recorder, bare, labels);

  async function run(client: C, use: (client: C) => Promise<unknown>) {
    const from = fake.requests.length;
    const outcome = await outcomeOf(() => use(client));
    return { outcome, requests: fake.requests.slice(from) };
  }

  return {
    recorder,
    bare,
    wrapped,
    async same(traceCount, use) {
      const before = recorder.traces.length;
      const onBare = await run(bare, use);
      assert.equal(recorder.traces.length, before, 'the bare client was recorded');
      const onWrapped = await run(wrapped, use);
      assert.deepEqual(onWrapped.outcome, onBare.outcome);
      assert.deepEqual(onWrapped.requests.map(lasting), onBare.requests.map(lasting));
      const traces = (await recorder.settled(before + traceCount)).slice(before);
      assert.equal(traces.length, traceCount, 'each request is recorded once');
      assert.deepEqual(recorder.errors, []);
      const requests = { bare: onBare.requests, wrapped: onWrapped.requests };
      return { outcome: onBare.outcome, traces, requests };
    },
  };
}

/** A request without what our question for the usage adds. */
function lasting({ path, headers, body }: ProviderRequest): object {
  const kept = Object.entries(headers).filter(([name]) => !passing.includes(name));
  const { stream_options: _added, ...asked } = body;
  return { path, headers: Object.fromEntries(kept), body: asked };
}

/** What a `for await` over it sees. */
export async function itemsOf<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

/** A trace without what differs from run to run, after a look at it. */
export function lastingTrace(whole: TraceInput): TraceInput {
  const { latency_ms: latency, ttft_ms: ttft = 0, started_at: startedAt, ...trace } = whole;
  // The call was made in this process, so it lasted no longer than the process.
  assert.ok(Number.isInteger(latency) && (latency ?? -1) >= 0);
  assert.ok((latency ?? Infinity) <= Math.ceil(performance.now()), `${latency} ms`);
  assert.ok(Number.isInteger(ttft) && (ttft ?? -1) >= 0 && (ttft ?? 1e9) <= (latency ?? 0));
  const startedMs = Date.parse(startedAt ?? '');
  assert.ok(
    startedMs >= Math.floor(performance.timeOrigin) && startedMs <= Date.now(),
    `${startedAt}`,
  );
  return trace;
}

export function only<T>(items: readonly T[]): T {
  assert.equal(items.length, 1);
  return items[0] as T;
}
