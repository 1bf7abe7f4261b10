import assert from 'node:assert/strict';
import type { Trace, TraceInput } from '../../../client/src/api-types.ts';
import type { TestService } from '../../../server/test/support/service.ts';

const batchMax = 1_000;

/** Records them in order, through the API, and returns them as they were stored, oldest first. */
export async function record(
  service: TestService,
  key: string,
  traces: readonly TraceInput[],
): Promise<Trace[]> {
  const stored: Trace[] = [];
  for (let from = 0; from < traces.length; from += batchMax) {
    const body = { traces: traces.slice(from, from + batchMax) };
    const { status, json } = await service.call(key, 'POST', '/traces/batch', body);
    assert.equal(status, 201, JSON.stringify(json));
    assert.deepEqual(json.rejected, []);
    stored.push(...(json.traces as Trace[]));
  }
  return stored;
}

/** A single trace. */
export async function recordOne(
  service: TestService,
  key: string,
  trace: Partial<TraceInput> = {},
): Promise<Trace> {
  const [stored] = await record(service, key, [{ model: 'gpt-4o', ...trace }]);
  assert.ok(stored !== undefined);
  return stored;
}

/** Many plain ones, told apart by their users: user-1, user-2, … */
export function plainTraces(count: number): TraceInput[] {
  return Array.from({ length: count }, (_, index) => ({
    model: 'gpt-4o',
    feature_name: 'chat',
    user_identifier: `user-${index + 1}`,
    input: `question ${index + 1}`,
    output: `answer ${index + 1}`,
    prompt_tokens: 10 + index,
    completion_tokens: 5,
    latency_ms: 100 + index,
    cost_usd: 0.001,
  }));
}
