import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';
import type { Tally } from '../../core/rollup.ts';
import type { Trace } from '../../core/trace.ts';
import { uuidText } from '../../core/uuid.ts';
import { payloadNames } from '../../core/trace.ts';
import { payloadsOfRow, unpackPayloads } from '../payload.ts';
import type { AuditTrace } from '../store.ts';

/** SQLite's rows as our own types. The casts here are what `strict` tables promise; they stand nowhere else. */
export type Row = Record<string, SQLOutputValue>;

/** The columns of a trace without its payloads. */
export const shortColumns = `id, created_at_us, model, is_error, prompt_tokens, completion_tokens, latency_ms,
  cost_usd, feature_name, user_identifier, zstd_mask`;

export const traceColumns = [shortColumns, ...payloadNames].join(', ');

export function traceFromRow(row: Row, teamId: string): Trace {
  return {
    id: uuidText(row['id'] as Uint8Array),
    teamId,
    createdAtUs: row['created_at_us'] as number,
    model: row['model'] as string,
    ...unpackPayloads(payloadsOfRow(row)),
    promptTokens: row['prompt_tokens'] as number | null,
    completionTokens: row['completion_tokens'] as number | null,
    latencyMs: row['latency_ms'] as number | null,
    costUsd: row['cost_usd'] as number | null,
    status: row['is_error'] === 1 ? 'error' : 'success',
    featureName: row['feature_name'] as string | null,
    userIdentifier: row['user_identifier'] as string | null,
  };
}

export function auditTraceFromRow(row: Row): AuditTrace {
  return {
    seq: row['seq'] as number,
    id: uuidText(row['id'] as Uint8Array),
    createdAtUs: row['created_at_us'] as number,
    model: row['model'] as string,
    status: row['is_error'] === 1 ? 'error' : 'success',
    promptTokens: row['prompt_tokens'] as number | null,
    completionTokens: row['completion_tokens'] as number | null,
    latencyMs: row['latency_ms'] as number | null,
    costUsd: row['cost_usd'] as number | null,
    featureName: row['feature_name'] as string | null,
    userIdentifier: row['user_identifier'] as string | null,
  };
}

export const tallyColumns = `calls, errors, latency_sum, latency_count, prompt_tokens, completion_tokens,
  cost_micros, cost_picos`;

/** A row as a list: a chart reads dozens of them, and names cost as much as the reading itself. */
export type RowValues = readonly SQLOutputValue[];

/** A statement of sums: rows as lists, integers as BigInt since sums may pass 2^53. */
export function prepareTallies(db: DatabaseSync, sql: string): TallyStatement {
  const statement = db.prepare(sql);
  statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  return statement as unknown as TallyStatement;
}

/** What Node's types do not know of: that rows are lists now. */
export interface TallyStatement {
  get(...values: SQLInputValue[]): RowValues | undefined;
  all(...values: SQLInputValue[]): RowValues[];
  iterate(...values: SQLInputValue[]): Iterable<RowValues>;
}

/** Reads `tallyColumns`, of which the first stands at `at`. */
export function tallyFromRow(row: RowValues, at: number): Tally {
  return {
    calls: row[at] as bigint,
    errors: row[at + 1] as bigint,
    latencySum: row[at + 2] as bigint,
    latencyCount: row[at + 3] as bigint,
    promptTokens: row[at + 4] as bigint,
    completionTokens: row[at + 5] as bigint,
    costMicros: row[at + 6] as bigint,
    costPicos: row[at + 7] as bigint,
  };
}
