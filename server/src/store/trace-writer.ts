import type { TraceDraft } from '../core/trace-fields.ts';
import { draftBytes } from '../core/trace.ts';
import type { TraceStamp } from '../core/trace.ts';
import type { ErrorCode } from '../errors.ts';
import { blobBytes } from './payload-blob.ts';
import type { PayloadBlob } from './payload-blob.ts';

/** Traces of one caller. They are stored together, in order, or not at all. */
export interface TraceWrite {
  teamId: string;
  drafts: readonly TraceDraft[];
  /** The payloads of the drafts, if they are packed already. The drafts themselves have none then. */
  payloads?: readonly PayloadBlob[] | null;
  /** Set if the request may be stored only once. */
  request?: IdempotentRequest | null;
  /** For each draft the ids under which its call was reported, if calls that were stored before are to be left out. */
  calls?: readonly (readonly CallIds[])[] | null;
  /** Times to use instead of the clock, one per draft, ascending. Only for tests and fixtures; no route sets them. */
  timesUs?: readonly number[] | null;
}

/** The approximate memory that a write uses while it waits. */
export function writeBytes({ drafts, payloads }: TraceWrite): number {
  let bytes = 0;
  for (const draft of drafts) bytes += draftBytes(draft);
  for (const blob of payloads ?? []) bytes += blobBytes(blob);
  return bytes;
}

/** A request with an Idempotency-Key: a second one with the same key and body stores nothing. */
export interface IdempotentRequest {
  keyHash: string;
  bodyHash: string;
  /** The rejected items of the request as the reply showed them, so that the same reply can be given again. */
  rejected: string | null;
}

export const emitterChars = 4;

/** The ids by which a call is recognized if it is reported again within a day: `s:` and a span, or `r:` and a response. */
export interface CallIds {
  span: string | null;
  /** The span around it. If that reports a call too, it may be the same one. */
  outerSpan: string | null;
  /** What the provider called its response. */
  response: string | null;
  /** The instrumentation that reported it: so many characters of a hash. */
  emitter: string;
  /** Whether it reported a failure. */
  isError: boolean;
}

/** The traces of an earlier request, and the rejected items of its reply. */
export interface Replay {
  firstSeq: number;
  count: number;
  rejected: string | null;
}

export interface FailedWrite {
  kind: 'failed';
  code: ErrorCode;
  /** For the log, never for the caller. */
  reason: string;
}

export type WriteOutcome =
  | {
      kind: 'stored';
      stamps: readonly TraceStamp[];
      /** The indexes of drafts that were left out, since their calls were stored before. They have no stamps. */
      duplicates?: readonly number[];
    }
  | ({ kind: 'replayed' } & Replay)
  | FailedWrite;

/** How many traces were stored. */
export function storedRows(outcomes: readonly WriteOutcome[]): number {
  return outcomes.reduce(
    (rows, outcome) => rows + (outcome.kind === 'stored' ? outcome.stamps.length : 0),
    0,
  );
}

/** A team's last trace was far ahead of the clock, so the next time was earlier than the last. */
export interface ClockJump {
  teamId: string;
  aheadUs: number;
}

export interface TraceWriter {
  /**
   * Stores each write completely or not at all, and returns one outcome per write, in order. When it resolves, everything stored is on
   * disk, readable and counted. If an idempotent request is written twice, only the first write is stored, even within one call or
   * across restarts; the other outcome says which traces the first one stored. The same holds for a call with ids, except that the rest
   * of its write is stored. Writes may share a transaction, but a failed write
   * never makes another one fail. If `moreFollow` is true, the store may delay the commit until the next call. A store that knows one
   * outcome before the others may pass it to `tell` early.
   */
  append(
    writes: readonly TraceWrite[],
    moreFollow?: boolean,
    tell?: (at: number, outcome: WriteOutcome) => void,
  ): Promise<readonly WriteOutcome[]>;
}
