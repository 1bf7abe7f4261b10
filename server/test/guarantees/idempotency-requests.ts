import { gzipSync } from 'node:zlib';
import type { Post } from '../support/post-traces.ts';

/** One request with an idempotency key. It is derived from its name alone, so it can be sent again byte for byte. */
export interface IdempotentPost extends Post {
  /** How many traces it stores. Trace i has `name/i` as its user. */
  traces: number;
}

export function idempotentPost(name: string): IdempotentPost {
  const dice = Buffer.from(name).reduce((sum, byte) => (sum * 31 + byte) % 1_000_003, 7);
  const isSingle = dice % 5 === 0;
  const count = isSingle ? 1 : 1 + (dice % 60);
  const traces: object[] = Array.from({ length: count }, (_, i) => ({
    model: 'gpt-4o',
    input: `question ${name} ${'x'.repeat((dice * (i + 1)) % 700)}`,
    cost_usd: 0.000123,
    feature_name: 'idempotency',
    user_identifier: `${name}/${i}`,
  }));
  // A rejected item, so that the replayed reply has one, too.
  if (!isSingle && dice % 3 === 0) traces.splice(dice % count, 0, { model: '' });
  const text = JSON.stringify(isSingle ? traces[0] : { traces });
  const isPacked = dice % 2 === 0;
  return {
    path: isSingle ? '/traces' : '/traces/batch',
    body: isPacked ? gzipSync(text, { level: 1 }) : Buffer.from(text),
    headers: { 'idempotency-key': name, ...(isPacked ? { 'content-encoding': 'gzip' } : {}) },
    traces: count,
  };
}
