import type { TraceInput } from '../../../client/src/api-types.ts';
import type { ManualClock, TestService } from '../../../server/test/support/service.ts';
import { record } from './seed.ts';

const dayMs = 24 * 3_600_000;

/**
 * Calls of seven days, as a team may have them: a day without any, errors, costs with many digits, more models than fit, and some calls
 * that no feature was named for. The clock ends at the present.
 */
export async function recordWeek(
  service: TestService,
  key: string,
  clock: ManualClock,
): Promise<void> {
  const nowMs = Date.now();
  // At noon, so that no day is missed.
  const todayMs = Math.floor(nowMs / dayMs) * dayMs;
  const callsPerDay = [12, 30, 0, 7, 21, 45, 16];
  for (const [day, calls] of callsPerDay.entries()) {
    const ageDays = callsPerDay.length - 1 - day;
    const atMs = ageDays === 0 ? nowMs : todayMs - ageDays * dayMs + dayMs / 2;
    clock.set(atMs * 1000);
    if (calls > 0) await record(service, key, callsOfDay(day, calls));
  }
}

function callsOfDay(day: number, calls: number): TraceInput[] {
  return Array.from({ length: calls }, (_, index) => ({
    model: `model-${String.fromCodePoint(97 + ((((index * index) % 11) + day) % 11))}`,
    feature_name: index % 5 === 0 ? null : (['search', 'chat', 'summaries'][index % 3] ?? null),
    latency_ms: 200 + 37 * index + 311 * day,
    cost_usd: 0.001_234_5 * (index + 1) + day * 0.01,
    prompt_tokens: 100 + index,
    completion_tokens: 20,
    ...(index % 9 === 4 && { error_message: 'The model is overloaded.' }),
  }));
}
