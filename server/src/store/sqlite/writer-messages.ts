import type { ClockSource } from '../../core/clock.ts';
import { draftValues, packDraft, unpackDraft } from '../../core/draft-values.ts';
import type { Packed } from '../../core/draft-values.ts';
import type { TraceDraft } from '../../core/trace-fields.ts';
import type { TraceStamp } from '../../core/trace.ts';
import type { ErrorCode } from '../../errors.ts';
import type { KeyUse } from '../key-table.ts';
import type {
  CallIds,
  ClockJump,
  IdempotentRequest,
  TraceWrite,
  WriteOutcome,
} from '../trace-writer.ts';
import type { PayloadBlob } from '../payload-blob.ts';

/** Messages between the main thread and the writer thread. */
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
      /** Of all writes. */
      bytes: number;
      tookMs: number;
    };

export function packWrites(writes: readonly TraceWrite[]): Packed {
  const packed: unknown[] = [];
  let lastTeamId: string | null = null;
  for (const { teamId, drafts, request, calls, timesUs, payloads } of writes) {
    // A text that is sent is a new one in the other thread, and looking it up takes longer.
    const newTeamId = teamId === lastTeamId ? null : teamId;
    lastTeamId = teamId;
    packed.push(newTeamId, drafts.length, request, calls ? packCalls(calls) : null, timesUs);
    packed.push(payloads ?? null);
    for (const draft of drafts) packDraft(packed, draft);
  }
  return packed;
}

export function unpackWrites(packed: Packed): TraceWrite[] {
  const writes: TraceWrite[] = [];
  let teamId = '';
  let at = 0;
  while (at < packed.length) {
    teamId = (packed[at++] as string | null) ?? teamId;
    const count = packed[at++] as number;
    const request = packed[at++] as IdempotentRequest | null;
    const calls = packed[at++] as PackedCalls | null;
    const timesUs = packed[at++] as readonly number[] | null;
    const payloads = packed[at++] as readonly PayloadBlob[] | null;
    const drafts: TraceDraft[] = [];
    for (; drafts.length < count; at += draftValues) drafts.push(unpackDraft(packed, at));
    writes.push({ teamId, drafts, request, calls: calls && unpackCalls(calls), timesUs, payloads });
  }
  return writes;
}

/** Of each draft the number of its reports, then their ids. */
type PackedCalls = readonly (string | number | boolean | null)[];

function packCalls(calls: readonly (readonly CallIds[])[]): PackedCalls {
  const packed: (string | number | boolean | null)[] = [];
  for (const reports of calls) {
    packed.push(reports.length);
    for (const { span, outerSpan, response, emitter, isError } of reports) {
      packed.push(span, outerSpan, response, emitter, isError);
    }
  }
  return packed;
}

function unpackCalls(packed: PackedCalls): CallIds[][] {
  const next = new PackedReader(packed);
  const calls: CallIds[][] = [];
  while (next.isMore()) {
    const reports: CallIds[] = [];
    for (let left = next.take<number>(); left > 0; left--) {
      const [span, outerSpan, response] = [next.take<Id>(), next.take<Id>(), next.take<Id>()];
      reports.push({ span, outerSpan, response, emitter: next.take(), isError: next.take() });
    }
    calls.push(reports);
  }
  return calls;
}

type Id = string | null;

/** Used in place of the number of stamps. */
const failed = -1;
const replayed = -2;

export function packOutcomes(outcomes: readonly WriteOutcome[]): Packed {
  const packed: unknown[] = [];
  for (const outcome of outcomes) {
    if (outcome.kind === 'failed') {
      packed.push(failed, outcome.code, outcome.reason);
      continue;
    }
    if (outcome.kind === 'replayed') {
      packed.push(replayed, outcome.firstSeq, outcome.count, outcome.rejected);
      continue;
    }
    packed.push(outcome.stamps.length, outcome.duplicates);
    for (const { id, createdAtUs } of outcome.stamps) packed.push(id, createdAtUs);
  }
  return packed;
}

export function unpackOutcomes(packed: Packed): WriteOutcome[] {
  const next = new PackedReader(packed);
  const outcomes: WriteOutcome[] = [];
  while (next.isMore()) {
    const count = next.take<number>();
    if (count === failed) {
      const code = next.take<ErrorCode>();
      outcomes.push({ kind: 'failed', code, reason: next.take() });
      continue;
    }
    if (count === replayed) {
      const firstSeq = next.take<number>();
      outcomes.push({ kind: 'replayed', firstSeq, count: next.take(), rejected: next.take() });
      continue;
    }
    const duplicates = next.take<readonly number[] | undefined>();
    const stamps: TraceStamp[] = [];
    for (let i = 0; i < count; i++) stamps.push({ id: next.take(), createdAtUs: next.take() });
    outcomes.push({ kind: 'stored', stamps, ...(duplicates && { duplicates }) });
  }
  return outcomes;
}

/** A class, since nested functions should not share a variable in a hot loop (docs/decisions/0017-no-shared-places.md). */
class PackedReader {
  readonly #packed: Packed;
  #at = 0;

  constructor(packed: Packed) {
    this.#packed = packed;
  }

  isMore(): boolean {
    return this.#at < this.#packed.length;
  }

  take<T>(): T {
    return this.#packed[this.#at++] as T;
  }
}
