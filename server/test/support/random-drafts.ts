import { draftTrace } from '../../src/core/trace.ts';
import type { TraceDraft } from '../../src/core/trace-fields.ts';
import { pick } from './seeded-random.ts';

/** A call of the last three days with a value for everything that is summed or grouped by. */
export function randomDraft(random: () => number, nowUs: number): TraceDraft {
  const number = (max: number): number => Math.floor(random() * max);
  const draft = draftTrace({
    model: pick(random, ['gpt-4o', 'haiku', 'flash']),
    feature_name: pick(random, [null, 'chat', 'search']),
    user_identifier: pick(random, [null, `user-${number(500)}`]),
    environment: pick(random, [null, 'production', 'staging']),
    provider: pick(random, [null, 'openai', 'anthropic']),
    session_id: `session-${number(2_000)}`,
    status: pick(random, ['success', 'success', 'success', 'error']),
    error_type: pick(random, [null, 'timeout', 'rate_limit']),
    prompt_tokens: 500 + number(10_000),
    cache_read_tokens: number(500),
    completion_tokens: number(2_000),
    latency_ms: pick(random, [null, number(90), number(60_000)]),
    cost_usd: pick(random, [null, number(10 ** 9) / 1e12, number(1_000) / 1e3]),
    input: 'x'.repeat(number(200)),
  });
  return { ...draft, started_at: pick(random, [null, nowUs - number(3 * 86_400) * 1_000_000]) };
}
