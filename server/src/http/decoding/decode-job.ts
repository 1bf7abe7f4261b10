import type { Packed } from '../../core/draft-values.ts';
import type { PriceEntry } from '../../core/prices/own-prices.ts';
import type { PayloadName } from '../../core/trace-fields.ts';
import type { ErrorCode, FieldError } from '../../errors.ts';
import type { PayloadBlob } from '../../store/payload-blob.ts';
import type { CallIds } from '../../store/trace-writer.ts';
import type { ShownTraces } from './shown-traces.ts';

/** Messages between the main thread and the decoding threads. */

/** What a body contains. */
export type BodyKind = 'trace' | 'batch' | 'span' | 'log' | 'litellm';
export type BodyEncoding = 'json' | 'protobuf';
export type BodyCoding = 'identity' | 'gzip' | 'zstd';

/** One body to decode. */
export interface DecodeJob {
  kind: BodyKind;
  encoding: BodyEncoding;
  coding: BodyCoding;
  bytes: Uint8Array<ArrayBuffer>;
  /** Bytes of the decompressed body, and of one trace. */
  bodyBytesMax: number;
  traceBytesMax: number;
  teamId: string;
  nowUs: number;
  basePath: string;
  /** Payloads that the reply leaves out. */
  omit: readonly PayloadName[];
  /** Hashed before the body if the request may be stored only once; otherwise null. */
  hashPrefix: string | null;
  /** Null if missing costs are not computed. */
  prices: OwnPriceList | null;
}

/** The prices that operators have set. */
export interface OwnPriceList {
  no: number;
  /** Null if the thread has them from an earlier job. */
  entries: readonly PriceEntry[] | null;
}

/** Some of the traces of a body, serialized, so that the main thread reads a large body in several turns. */
export interface DecodedPart {
  rows: number;
  /** A `PartValues`. */
  values: Uint8Array<ArrayBuffer>;
  payloads: PayloadBlob;
  /** Null if the reply does not show the traces. */
  shown: ShownTraces | null;
}

export interface PartValues {
  drafts: Packed;
  /** The ids of the reports of each call; null if the body is not one of calls. */
  calls: readonly (readonly CallIds[])[] | null;
}

/** What became of the signals of a request before any is stored. */
export interface DecodedSignals {
  total: number;
  skipped: number;
  rejected: number;
  duplicate: number;
  /** Why signals were rejected, and how many for each reason. */
  reasons: readonly (readonly [reason: string, count: number])[];
}

export interface DecodedReply {
  kind: 'decoded';
  parts: readonly DecodedPart[];
  bodyHash: string | null;
  /** The rejected items of a batch as JSON. */
  rejected: string;
  signals: DecodedSignals | null;
}

export interface FailedReply {
  kind: 'failed';
  code: ErrorCode;
  say?: string;
  errors?: readonly FieldError[];
  /** For the log only. */
  cause?: string;
}

export type DecodeReply = DecodedReply | FailedReply;
