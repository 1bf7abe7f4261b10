import type { SQLOutputValue } from 'node:sqlite';
import type { Tally } from '../../core/rollup.ts';
import type { Trace } from '../../core/trace.ts';
import { uuidText } from '../../core/uuid.ts';
import { decodePayload } from '../payload.ts';
import { zstdBits } from './trace-key.ts';

/** SQLite's rows as our own types. The casts here are what `strict` tables promise; they stand nowhere else. */
export type Row = Record<string, SQLOutputValue>;

export const traceColumns = `id, created_at_us, model, is_error, prompt_tokens, completion_tokens, latency_ms,
  cost_usd, feature_name, user_identifier, zstd_mask, error_message`;

export function traceFromRow(row: Row, teamId: string): Trace {
  const mask = row['zstd_mask'] as number;
  return {
    id: uuidText(row['id'] as Uint8Array),
    teamId,
    createdAtUs: row['created_at_us'] as number,
    model: row['model'] as string,
    input: payload(row['input'], (mask & zstdBits.input) !== 0),
    output: payload(row['output'], (mask & zstdBits.output) !== 0),
    errorMessage: payload(row['error_message'], (mask & zstdBits.errorMessage) !== 0),
    promptTokens: row['prompt_tokens'] as number | null,
    completionTokens: row['completion_tokens'] as number | null,
    latencyMs: row['latency_ms'] as number | null,
    costUsd: row['cost_usd'] as number | null,
    status: row['is_error'] === 1 ? 'error' : 'success',
    featureName: row['feature_name'] as string | null,
    userIdentifier: row['user_identifier'] as string | null,
  };
}

function payload(bytes: SQLOutputValue | undefined, isZstd: boolean): string | null {
  return bytes instanceof Uint8Array ? decodePayload({ bytes, isZstd }) : null;
}

export const tallyColumns = `calls, errors, latency_sum, latency_count, prompt_tokens, completion_tokens,
  cost_micros, cost_picos`;

/** Of a statement that reads integers as BigInt. */
export function tallyFromRow(row: Row): Tally {
  return {
    calls: row['calls'] as bigint,
    errors: row['errors'] as bigint,
    latencySum: row['latency_sum'] as bigint,
    latencyCount: row['latency_count'] as bigint,
    promptTokens: row['prompt_tokens'] as bigint,
    completionTokens: row['completion_tokens'] as bigint,
    costMicros: row['cost_micros'] as bigint,
    costPicos: row['cost_picos'] as bigint,
  };
}
