import { gzipSync } from 'node:zlib';

/** One request with a key, made from nothing but its nonce: whoever knows the nonce can send it again to the byte. */
export interface OnceRequest {
  path: '/traces' | '/traces/batch';
  body: Buffer;
  isPacked: boolean;
  /** How many traces it stores. Trace i carries `nonce/i` as its user. */
  traces: number;
}

export function onceRequest(nonce: string): OnceRequest {
  const dice = Buffer.from(nonce).reduce((sum, byte) => (sum * 31 + byte) % 1_000_003, 7);
  const isSingle = dice % 5 === 0;
  const count = isSingle ? 1 : 1 + (dice % 60);
  const traces: object[] = Array.from({ length: count }, (_, i) => ({
    model: 'gpt-4o',
    input: `question ${nonce} ${'x'.repeat((dice * (i + 1)) % 700)}`,
    cost_usd: 0.000123,
    feature_name: 'once',
    user_identifier: `${nonce}/${i}`,
  }));
  // One that is rejected, so that the reply has more to tell again.
  if (!isSingle && dice % 3 === 0) traces.splice(dice % count, 0, { model: '' });
  const text = JSON.stringify(isSingle ? traces[0] : { traces });
  const isPacked = dice % 2 === 0;
  return {
    path: isSingle ? '/traces' : '/traces/batch',
    body: isPacked ? gzipSync(text, { level: 1 }) : Buffer.from(text),
    isPacked,
    traces: count,
  };
}
