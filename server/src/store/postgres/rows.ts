import type { NamedTally } from '../../core/analytics.ts';
import type { Scope } from '../../core/api-key.ts';
import type { Tally } from '../../core/rollup.ts';
import type { Trace } from '../../core/trace.ts';
import type { AuditTrace, KeyRecord } from '../store.ts';
import { payloadsOfRow, unpackPayloads } from '../payload.ts';
import type { Row } from './connection.ts';

/** PostgreSQL's rows as our own types. The casts here are what the tables promise; they stand nowhere else. */
export function traceFromRow(row: Row, teamId: string): Trace {
  return {
    id: row['id'] as string,
    teamId,
    createdAtUs: numberOf(row['created_at_us']),
    model: row['model'] as string,
    ...unpackPayloads(payloadsOfRow(row)),
    promptTokens: row['prompt_tokens'] as number | null,
    completionTokens: row['completion_tokens'] as number | null,
    latencyMs: row['latency_ms'] as number | null,
    costUsd: row['cost_usd'] as number | null,
    status: row['is_error'] === true ? 'error' : 'success',
    featureName: row['feature_name'] as string | null,
    userIdentifier: row['user_identifier'] as string | null,
  };
}

export function auditTraceFromRow(row: Row): AuditTrace {
  return {
    seq: numberOf(row['seq']),
    id: row['id'] as string,
    createdAtUs: numberOf(row['created_at_us']),
    model: row['model'] as string,
    status: row['is_error'] === true ? 'error' : 'success',
    promptTokens: row['prompt_tokens'] as number | null,
    completionTokens: row['completion_tokens'] as number | null,
    latencyMs: row['latency_ms'] as number | null,
    costUsd: row['cost_usd'] as number | null,
    featureName: row['feature_name'] as string | null,
    userIdentifier: row['user_identifier'] as string | null,
  };
}

export function groupFromRow(row: Row): NamedTally {
  return { key: row['key'] as string, tally: tallyFromRow(row) };
}

export function tallyFromRow(row: Row): Tally {
  return {
    calls: bigintOf(row['calls']),
    errors: bigintOf(row['errors']),
    latencySum: bigintOf(row['latency_sum']),
    latencyCount: bigintOf(row['latency_count']),
    promptTokens: bigintOf(row['prompt_tokens']),
    completionTokens: bigintOf(row['completion_tokens']),
    costMicros: bigintOf(row['cost_micros']),
    costPicos: bigintOf(row['cost_picos']),
  };
}

export function keyFromRow(row: Row): KeyRecord {
  return {
    id: row['id'] as string,
    teamId: row['team_id'] as string,
    teamName: row['team_name'] as string,
    prefix: row['prefix'] as string,
    name: row['name'] as string | null,
    scope: row['scope'] as Scope,
    createdAtUs: numberOf(row['created_at_us']),
    expiresAtUs: numberOrNull(row['expires_at_us']),
    revokedAtUs: numberOrNull(row['revoked_at_us']),
    replacedBy: row['replaced_by'] as string | null,
    lastUsedAtUs: numberOrNull(row['last_used_at_us']),
  };
}

/** The driver gives a bigint as text. Sequences and times stay far below 2^53. */
export function numberOf(value: unknown): number {
  return Number(value as string);
}

export function numberOrNull(value: unknown): number | null {
  return value === null ? null : numberOf(value);
}

/** Sums may pass 2^53. */
function bigintOf(value: unknown): bigint {
  return BigInt(value as string);
}
