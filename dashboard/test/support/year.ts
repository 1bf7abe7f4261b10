import type { TraceInput } from '../../../client/src/reading.ts';
import type { TestService } from '../../../server/test/support/service.ts';
import { record } from './seed.ts';

const dayMs = 86_400_000;

/** Calls of many days by `started_at`, with every field that can be filtered by, some of them not set. */
export async function recordDays(
  service: TestService,
  key: string,
  { days, perDay, nowMs = Date.now() }: { days: number; perDay: number; nowMs?: number },
): Promise<TraceInput[]> {
  const traces = Array.from({ length: days * perDay }, (_, index): TraceInput => {
    const age = Math.floor(index / perDay);
    return {
      // The newest one was a minute ago, so that none is in the future.
      started_at: new Date(nowMs - 60_000 - age * dayMs).toISOString(),
      model: ['alpha', 'beta', 'gamma'][index % 3] ?? 'alpha',
      feature_name: index % 4 === 0 ? null : (['chat', 'search'][index % 2] ?? null),
      user_identifier: index % 5 === 0 ? null : `user-${index % 7}`,
      environment: index % 3 === 0 ? 'production' : 'staging',
      provider: index % 2 === 0 ? 'openai' : null,
      latency_ms: 100 + 10 * index,
      cost_usd: 0.001 * (index + 1),
      prompt_tokens: 100,
      cache_read_tokens: 40,
      completion_tokens: 10,
      input: `question ${index}`,
      ...(index % 6 === 1 && { error_message: 'overloaded', error_type: 'rate_limit' }),
    };
  });
  await record(service, key, traces);
  return traces;
}
