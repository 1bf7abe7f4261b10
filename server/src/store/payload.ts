import { isUtf8 } from 'node:buffer';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { PayloadName, Trace, TraceDraft } from '../core/trace.ts';
import { limits } from '../limits.ts';

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
    // What was omitted was not read.
    errorMessage: (row['error_message'] ?? null) as Uint8Array | null,
    input: (row['input'] ?? null) as Uint8Array | null,
    output: (row['output'] ?? null) as Uint8Array | null,
  };
}

/** The payloads of a trace as text. One that is damaged is named and does not affect the others. Takes the bytes over. */
export function unpackPayloads(
  packed: PackedPayloads,
): Pick<Trace, 'input' | 'output' | 'errorMessage' | 'damaged'> {
  const damaged: PayloadName[] = [];
  const textOf = (name: PayloadName, bytes: Uint8Array | null, bit: number): string | null => {
    if (bytes === null) return null;
    const text = decodePayload({ bytes, isZstd: (packed.zstdMask & bit) !== 0 });
    if (text === null) damaged.push(name);
    return text;
  };
  const input = textOf('input', packed.input, zstdBits.input);
  const output = textOf('output', packed.output, zstdBits.output);
  const errorMessage = textOf('error_message', packed.errorMessage, zstdBits.errorMessage);
  return { input, output, errorMessage, ...(damaged.length > 0 && { damaged }) };
}

/** Which payloads of a trace cannot be read any more. Takes the bytes over. */
export function damagedPayloads(packed: PackedPayloads): readonly PayloadName[] {
  return unpackPayloads(packed).damaged ?? [];
}

/** About how much memory they hold. */
export function packedBytes({ errorMessage, input, output }: PackedPayloads): number {
  return (errorMessage?.length ?? 0) + (input?.length ?? 0) + (output?.length ?? 0);
}

/** With the checksum a changed byte is always noticed; without it most changes decompress into some other text. */
const options = {
  params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 },
};

export function encodePayload(text: string): StoredPayload {
  const raw = Buffer.from(text, 'utf8');
  if (raw.length < limits.compressBytesMin) return { bytes: raw, isZstd: false };
  const packed = zstdCompressSync(raw, options);
  return packed.length < raw.length * worthwhileShare
    ? { bytes: packed, isZstd: true }
    : { bytes: raw, isZstd: false };
}

const worthwhileShare = 0.9;

/** Null if the bytes are damaged. Takes them over: they are gone afterwards. */
export function decodePayload({ bytes, isZstd }: StoredPayload): string | null {
  const raw = isZstd ? decompress(bytes) : bytes;
  if (raw === null) return null;
  const text = isUtf8(raw)
    ? Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('utf8')
    : null;
  if (bytes.length >= releaseBytesMin) release(bytes);
  if (isZstd && raw.length >= releaseBytesMin) release(raw);
  return text;
}

function decompress(bytes: Uint8Array): Uint8Array | null {
  try {
    // No payload is larger than that; damaged bytes may ask for any size.
    const maxOutputLength = limits.queueBytesMax;
    return zstdDecompressSync(bytes, { chunkSize: likelyBytes(bytes), maxOutputLength });
  } catch {
    return null;
  }
}

/** Room for the whole text in most cases, so that it is not put together from pieces. Untouched room costs nothing. */
function likelyBytes(packed: Uint8Array): number {
  return Math.min(8 * 1024 * 1024, Math.max(16 * 1024, packed.length * 4));
}

const releaseBytesMin = 256 * 1024;

/** Frees large bytes now. The collector sees only a small object and would let hundreds of megabytes gather first. */
function release(bytes: Uint8Array): void {
  if (bytes.buffer instanceof ArrayBuffer) bytes.buffer.transfer(0);
}
