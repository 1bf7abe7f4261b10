/** A request of the fleet's clients, made from nothing but its nonce: whoever knows the nonce can send it again to the byte. */
export interface FleetRequest {
  path: '/traces' | '/traces/batch';
  body: string;
  /** It carries its nonce as its Idempotency-Key. */
  isKeyed: boolean;
  /** How many traces it stores. Trace i carries `nonce/i` as its user. */
  traces: number;
}

/** The nonce of a client's n-th request. */
export function nonceOf(client: number, n: number): string {
  return `${n % 5 === client % 5 ? 'keyed' : 'plain'}.${client}.${n}`;
}

/** A plain request is one trace; one with a key is one, or a batch of up to seven. */
export function fleetRequest(nonce: string): FleetRequest {
  const [kind, , n] = nonce.split('.');
  const isKeyed = kind === 'keyed';
  const traces = Array.from({ length: isKeyed ? 1 + (Number(n) % 7) : 1 }, (_, i) => ({
    model: 'gpt-4o',
    input: `question ${nonce}`,
    latency_ms: nonce.length,
    cost_usd: 0.000123,
    feature_name: 'fleet',
    user_identifier: `${nonce}/${i}`,
  }));
  return {
    path: traces.length === 1 ? '/traces' : '/traces/batch',
    body: JSON.stringify(traces.length === 1 ? traces[0] : { traces }),
    isKeyed,
    traces: traces.length,
  };
}
