import { limits } from '../limits.ts';
import type { Row } from './sql.ts';
import type { IdempotentRequest, Replay, WriteOutcome } from './trace-writer.ts';
import type { StoredRequest } from './transfer.ts';

/** An earlier request with the same idempotency key. */
export interface EarlierRequest extends Replay {
  bodyHash: string;
}

/** The outcome of a request whose idempotency key was used before. */
export function answerRepeated(
  { bodyHash }: IdempotentRequest,
  earlier: EarlierRequest,
): WriteOutcome {
  if (earlier.bodyHash !== bodyHash) {
    return { kind: 'failed', code: 'idempotency_key_reused', reason: 'different body' };
  }
  const { firstSeq, count, rejected } = earlier;
  return { kind: 'replayed', firstSeq, count, rejected };
}

export function expiryOf(nowUs: number): number {
  return nowUs + limits.idempotencyLifeMs * 1000;
}

export function earlierFromRow(row: Row): EarlierRequest {
  return {
    bodyHash: row['body_hash'] as string,
    firstSeq: Number(row['first_seq']),
    count: Number(row['count']),
    rejected: row['rejected'] as string | null,
  };
}

export function requestFromRow(row: Row): StoredRequest {
  return {
    keyHash: row['key_hash'] as string,
    ...earlierFromRow(row),
    expiresAtUs: Number(row['expires_at_us']),
  };
}
