import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { limits } from '../limits.ts';

/**
 * Payloads are stored as bytes, so that any text comes back as sent, U+0000 included, on every store. Long ones are
 * compressed where that pays.
 */
export interface StoredPayload {
  bytes: Uint8Array;
  isZstd: boolean;
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

export function decodePayload({ bytes, isZstd }: StoredPayload): string {
  const raw = isZstd ? zstdDecompressSync(bytes) : bytes;
  return Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('utf8');
}
