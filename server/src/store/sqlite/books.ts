import type { DatabaseSync } from 'node:sqlite';
import type { CountedTrace, RollupBatch, RollupDelta } from '../../core/rollup.ts';
import type { PackedPayloads } from '../payload.ts';
import { Failure } from '../../errors.ts';
import { isOverflow } from './sqlite-errors.ts';
import { keyOf } from './trace-key.ts';

/** Where a team's sequence and time stand. */
export interface TeamCounter {
  teamNo: number;
  firstSeq: number;
  lastSeq: number;
  lastUs: number;
}

/** The rows that a team's traces are written to, always all of them in one transaction of the caller's. */
export interface Books {
  counter(teamId: string): TeamCounter;
  addTrace(
    teamNo: number,
    seq: number,
    id: Uint8Array,
    createdAtUs: number,
    trace: CountedTrace,
    payloads: PackedPayloads,
  ): void;
  addRollups(teamNo: number, rollups: RollupBatch): void;
  moveCounter(counter: TeamCounter): void;
}

export function openBooks(db: DatabaseSync): Books {
  const readCounter = db.prepare(`
    select t.no, coalesce(c.first_seq, 1) as first_seq, coalesce(c.last_seq, 0) as last_seq,
      coalesce(c.last_created_at_us, 0) as last_created_at_us
    from teams t left join team_counters c on c.team_no = t.no where t.id = ?`);
  const writeCounter = db.prepare(`
    insert into team_counters (team_no, first_seq, last_seq, last_created_at_us) values (?, ?, ?, ?)
    on conflict do update set last_seq = excluded.last_seq, last_created_at_us = excluded.last_created_at_us`);
  const insertTrace = db.prepare(`
    insert into traces (key, id, created_at_us, model, is_error, prompt_tokens, completion_tokens, latency_ms,
      cost_usd, feature_name, user_identifier, zstd_mask, error_message, input, output)
    values (${keyOf}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  // It reports the key of the new row, which may pass 2^53.
  insertTrace.setReadBigInts(true);
  const addRollup = db.prepare(`
    insert into rollups (team_no, dimension, day, key, calls, errors, latency_sum, latency_count,
      prompt_tokens, completion_tokens, cost_micros, cost_picos)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict do update set
      calls = calls + excluded.calls,
      errors = errors + excluded.errors,
      latency_sum = latency_sum + excluded.latency_sum,
      latency_count = latency_count + excluded.latency_count,
      prompt_tokens = prompt_tokens + excluded.prompt_tokens,
      completion_tokens = completion_tokens + excluded.completion_tokens,
      cost_micros = cost_micros + excluded.cost_micros,
      cost_picos = cost_picos + excluded.cost_picos`);

  function addDelta(teamNo: number, delta: RollupDelta): void {
    try {
      addRollup.run(
        teamNo,
        delta.dimension,
        delta.day,
        delta.key,
        delta.calls,
        delta.errors,
        delta.latencySum,
        delta.latencyCount,
        delta.promptTokens,
        delta.completionTokens,
        delta.costMicros,
        delta.costPicos,
      );
    } catch (error) {
      // Of all sums only the cost can get there: 9.2 million traces of a million dollars.
      throw isOverflow(error) ? new Failure('total_cost_too_large', { cause: error }) : error;
    }
  }

  return {
    counter(teamId) {
      const row = readCounter.get(teamId);
      if (!row) throw new Error(`there is no team ${teamId}`);
      return {
        teamNo: row['no'] as number,
        firstSeq: row['first_seq'] as number,
        lastSeq: row['last_seq'] as number,
        lastUs: row['last_created_at_us'] as number,
      };
    },
    addTrace(teamNo, seq, id, createdAtUs, trace, payloads) {
      insertTrace.run(
        teamNo,
        seq,
        id,
        createdAtUs,
        trace.model,
        trace.status === 'error' ? 1 : 0,
        trace.promptTokens,
        trace.completionTokens,
        trace.latencyMs,
        trace.costUsd,
        trace.featureName,
        trace.userIdentifier,
        payloads.zstdMask,
        payloads.errorMessage,
        payloads.input,
        payloads.output,
      );
    },
    addRollups(teamNo, rollups) {
      for (const delta of rollups.deltas()) addDelta(teamNo, delta);
    },
    moveCounter({ teamNo, firstSeq, lastSeq, lastUs }) {
      writeCounter.run(teamNo, firstSeq, lastSeq, lastUs);
    },
  };
}
