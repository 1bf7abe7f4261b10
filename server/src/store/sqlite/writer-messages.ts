import type { ClockSource } from '../../core/clock.ts';
import type { TraceDraft, TraceStamp } from '../../core/trace.ts';
import type { ErrorCode } from '../../errors.ts';
import type { ClockJump, Once, TraceWrite, WriteOutcome } from '../store.ts';
import type { KeyUse } from './writer.ts';

/** What the two threads say to each other. */
export interface WriterData {
  path: string;
  clock: ClockSource;
}

export type ToWriter =
  | { kind: 'append'; ticket: number; writes: Packed; moreFollow: boolean }
  | { kind: 'keyUse'; use: KeyUse }
  | { kind: 'close' };

export type FromWriter =
  | { kind: 'ready' }
  | {
      kind: 'committed';
      /** The ticket of each append, in the order of the outcomes. */
      tickets: readonly number[];
      outcomes: Packed;
      clockJumps: readonly ClockJump[];
      brokenBy: string | null;
    };

/**
 * Values one after the other, without names. An object that crosses between threads takes the names of its fields along each
 * time, and they are looked up again one by one: for a trace of 1 KB that costs more than its text.
 */
export type Packed = readonly unknown[];

export function packWrites(writes: readonly TraceWrite[]): Packed {
  const packed: unknown[] = [];
  for (const { teamId, drafts, once, timesUs } of writes) {
    packed.push(teamId, drafts.length, once ?? null, timesUs ?? null);
    for (const draft of drafts) {
      packed.push(
        draft.model,
        draft.input,
        draft.output,
        draft.promptTokens,
        draft.completionTokens,
        draft.latencyMs,
        draft.costUsd,
        draft.status,
        draft.errorMessage,
        draft.featureName,
        draft.userIdentifier,
      );
    }
  }
  return packed;
}

export function unpackWrites(packed: Packed): TraceWrite[] {
  const next = reader(packed);
  const writes: TraceWrite[] = [];
  while (next.isMore()) {
    const teamId = next.take<string>();
    const count = next.take<number>();
    const once = next.take<Once | null>();
    const timesUs = next.take<readonly number[] | null>();
    const drafts: TraceDraft[] = [];
    for (let i = 0; i < count; i++) {
      drafts.push({
        model: next.take(),
        input: next.take(),
        output: next.take(),
        promptTokens: next.take(),
        completionTokens: next.take(),
        latencyMs: next.take(),
        costUsd: next.take(),
        status: next.take(),
        errorMessage: next.take(),
        featureName: next.take(),
        userIdentifier: next.take(),
      });
    }
    writes.push({ teamId, drafts, ...(once && { once }), ...(timesUs && { timesUs }) });
  }
  return writes;
}

/** These stand where the number of stamps would. */
const refused = -1;
const replayed = -2;

export function packOutcomes(outcomes: readonly WriteOutcome[]): Packed {
  const packed: unknown[] = [];
  for (const outcome of outcomes) {
    if (outcome.kind === 'refused') {
      packed.push(refused, outcome.code, outcome.reason);
      continue;
    }
    if (outcome.kind === 'replayed') {
      packed.push(replayed, outcome.firstSeq, outcome.count, outcome.rejected);
      continue;
    }
    packed.push(outcome.stamps.length);
    for (const { id, createdAtUs } of outcome.stamps) packed.push(id, createdAtUs);
  }
  return packed;
}

export function unpackOutcomes(packed: Packed): WriteOutcome[] {
  const next = reader(packed);
  const outcomes: WriteOutcome[] = [];
  while (next.isMore()) {
    const count = next.take<number>();
    if (count === refused) {
      const code = next.take<ErrorCode>();
      outcomes.push({ kind: 'refused', code, reason: next.take() });
      continue;
    }
    if (count === replayed) {
      const firstSeq = next.take<number>();
      outcomes.push({ kind: 'replayed', firstSeq, count: next.take(), rejected: next.take() });
      continue;
    }
    const stamps: TraceStamp[] = [];
    for (let i = 0; i < count; i++) stamps.push({ id: next.take(), createdAtUs: next.take() });
    outcomes.push({ kind: 'stored', stamps });
  }
  return outcomes;
}

function reader(packed: Packed) {
  let at = 0;
  return {
    isMore: (): boolean => at < packed.length,
    take: <T>(): T => packed[at++] as T,
  };
}
