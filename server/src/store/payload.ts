import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { TraceDraft } from '../core/trace.ts';
import { limits } from '../limits.ts';

/** The long texts of a trace: names on the wire and of the columns of every store. Lists may leave them out. */
export const payloadNames = ['input', 'output', 'error_message'] as const;
export type Payload = (typeof payloadNames)[number];

/**
 * Payloads are stored as bytes, so that any text comes back as sent, U+0000 included, on every store. Long ones are
 * compressed where that pays.
 */
export interface StoredPayload {
  bytes: Uint8Array;
  isZstd: boolean;
}

/** Which payloads of a row are compressed, as bits of `zstd_mask`. They are stored: they never change their meaning. */
export const zstdBits = { input: 1, output: 2, errorMessage: 4 } as const;

/** The payloads of one trace as they are stored. */
export interface PackedPayloads {
  zstdMask: number;
  errorMessage: Uint8Array | null;
  input: Uint8Array | null;
  output: Uint8Array | null;
}

export function packPayloads(draft: TraceDraft): PackedPayloads {
  const input = draft.input === null ? null : encodePayload(draft.input);
  const output = draft.output === null ? null : encodePayload(draft.output);
  const error = draft.errorMessage === null ? null : encodePayload(draft.errorMessage);
  return {
    zstdMask:
      (input?.isZstd ? zstdBits.input : 0) |
      (output?.isZstd ? zstdBits.output : 0) |
      (error?.isZstd ? zstdBits.errorMessage : 0),
    errorMessage: error?.bytes ?? null,
    input: input?.bytes ?? null,
    output: output?.bytes ?? null,
  };
}

/** The columns have the same names in every store. */
export function payloadsOfRow(row: Readonly<Record<string, unknown>>): PackedPayloads {
  return {
    zstdMask: row['zstd_mask'] as number,
    errorMessage: row['error_message'] as Uint8Array | null,
    input: row['input'] as Uint8Array | null,
    output: row['output'] as Uint8Array | null,
  };
}

/** About how much memory they hold. */
export function packedBytes({ errorMessage, input, output }: PackedPayloads): number {
  return (errorMessage?.length ?? 0) + (input?.length ?? 0) + (output?.length ?? 0);
}

const options = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

export function encodePayload(text: string): StoredPayload {
  const raw = Buffer.from(text, 'utf8');
  if (raw.length < limits.compressBytesMin) return { bytes: raw, isZstd: false };
  const packed = zstdCompressSync(raw, options);
  return packed.length < raw.length * worthwhileShare
    ? { bytes: packed, isZstd: true }
    : { bytes: raw, isZstd: false };
}

const worthwhileShare = 0.9;

/** Takes the bytes over: they are gone afterwards. */
export function decodePayload({ bytes, isZstd }: StoredPayload): string {
  const raw = isZstd ? zstdDecompressSync(bytes, { chunkSize: likelyBytes(bytes) }) : bytes;
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('utf8');
  if (bytes.length >= releaseBytesMin) release(bytes);
  if (isZstd && raw.length >= releaseBytesMin) release(raw);
  return text;
}

/** Room for the whole text in most cases, so that it is not put together from pieces. Untouched room costs nothing. */
function likelyBytes(packed: Uint8Array): number {
  return Math.min(8 * 1024 * 1024, Math.max(64 * 1024, packed.length * 4));
}

const releaseBytesMin = 256 * 1024;

/** Frees large bytes now. The collector sees only a small object and would let hundreds of megabytes gather first. */
function release(bytes: Uint8Array): void {
  if (bytes.buffer instanceof ArrayBuffer) bytes.buffer.transfer(0);
}
