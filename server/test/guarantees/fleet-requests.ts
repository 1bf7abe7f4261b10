import type { Post } from '../support/post-traces.ts';

/** A request of the fleet's clients. It is derived from its name alone, so it can be sent again byte for byte. */
export interface FleetPost extends Post {
  /** Whether it carries its name as its idempotency key. */
  isIdempotent: boolean;
  /** How many traces it stores. Trace i has `name/i` as its user. */
  traces: number;
}

/** Short for idempotent requests: the next server then often gets a request that the first one is still working on. */
export const answerMsMax = { idempotent: 700, plain: 60_000 };

/** The name of a client's n-th request. */
export function requestName(client: number, n: number): string {
  return `${n % 5 === client % 5 ? 'idempotent' : 'plain'}.${client}.${n}`;
}

/** A plain request is one trace; an idempotent one is one, or a batch of up to seven. */
export function fleetPost(name: string): FleetPost {
  const [kind, , n] = name.split('.');
  const isIdempotent = kind === 'idempotent';
  const traces = Array.from({ length: isIdempotent ? 1 + (Number(n) % 7) : 1 }, (_, i) => ({
    model: 'gpt-4o',
    input: `question ${name}`,
    latency_ms: name.length,
    cost_usd: 0.000123,
    feature_name: 'fleet',
    user_identifier: `${name}/${i}`,
  }));
  return {
    path: traces.length === 1 ? '/traces' : '/traces/batch',
    body: JSON.stringify(traces.length === 1 ? traces[0] : { traces }),
    headers: isIdempotent ? { 'idempotency-key': name } : {},
    withinMs: answerMsMax[isIdempotent ? 'idempotent' : 'plain'],
    isIdempotent,
    traces: traces.length,
  };
}
