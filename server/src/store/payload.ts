import { isUtf8 } from 'node:buffer';
import { constants, crc32, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { compile } from '../core/compile.ts';
import { payloadNames, previewedNames, traceFields } from '../core/trace-fields.ts';
import type { PayloadName, TraceDraft } from '../core/trace-fields.ts';
import type { Trace } from '../core/trace.ts';
import { limits } from '../limits.ts';

/**
 * Payloads are stored as bytes, so that every store returns any text exactly as sent, including U+0000. Long ones are
 * compressed if that makes them smaller.
 */
export interface StoredPayload {
  bytes: Uint8Array;
  isZstd: boolean;
}

/**
 * The payloads of one trace as they are stored. Bits of `zstdMask` say which of them are compressed. The checksum is null if some of
 * them were not read, so that it cannot be compared.
 */
export type PackedPayloads = { zstdMask: number; checksum: number | null } & PayloadBytes;

type PayloadBytes = Record<PayloadName, Uint8Array | null>;

const payloads = payloadNames.map((name) => ({
  name,
  bit: traceFields[name].zstdBit ?? 0,
  isPreviewed: previewedNames.includes(name),
  isMetadata: traceFields[name].kind === 'metadata',
}));

/** Whether a trace needs a row in `trace_payloads`. */
export const hasPayloads = compile<(packed: PayloadBytes) => boolean>(
  `(packed) => ${payloadNames.map((name) => `packed.${name} !== null`).join(' || ')}`,
);

const header = new DataView(new ArrayBuffer(1 + 4 * payloadNames.length));

/** In place of a length. No payload is that long. */
const notSet = 0xffff_ffff;

/** A CRC-32 of the mask, of the length of each payload, and of their bytes, in the order of their declaration. */
export const checksumOf = compile<(packed: PayloadBytes & { zstdMask: number }) => number>(
  `(packed) => {
    header.setUint8(0, packed.zstdMask);
    ${payloadNames
      .map(
        (name, i) =>
          `header.setUint32(${1 + 4 * i}, packed.${name} === null ? notSet : packed.${name}.length, true);`,
      )
      .join(' ')}
    let checksum = crc32(header);
    ${payloadNames.map((name) => `if (packed.${name} !== null) checksum = crc32(packed.${name}, checksum);`).join(' ')}
    return checksum;
  }`,
  { header, notSet, crc32 },
);

/** Spelled out, since it runs for every trace that is written (core/compile.ts). */
export const packPayloads = compile<(draft: Pick<TraceDraft, PayloadName>) => PackedPayloads>(
  `(draft) => {
    let zstdMask = 0;
    ${payloadNames
      .map(
        (name) => `
        let ${name} = null;
        if (draft.${name} !== null) {
          const { bytes, isZstd } = encodePayload(draft.${name});
          ${name} = bytes;
          if (isZstd) zstdMask |= ${traceFields[name].zstdBit ?? 0};
        }`,
      )
      .join('')}
    const packed = { zstdMask, checksum: null, ${payloadNames.join(', ')} };
    if (hasPayloads(packed)) packed.checksum = checksumOf(packed);
    return packed;
  }`,
  { encodePayload, hasPayloads, checksumOf },
);

/** The columns have the same names in every store. Columns that were left out of the query are null. */
export function payloadsOfRow(row: Readonly<Record<string, unknown>>): PackedPayloads {
  const packed: Record<string, unknown> = {
    zstdMask: row['zstd_mask'] ?? 0,
    checksum: numberOrNull(row['checksum']),
  };
  for (const name of payloadNames) packed[name] = row[name] ?? null;
  return packed as PackedPayloads;
}

/** PostgreSQL returns large integers as text. */
function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

/**
 * The payloads of a trace as text, or only their first characters. If the checksum is wrong, all of them are damaged. Consumes the
 * bytes.
 */
export function unpackPayloads(
  packed: PackedPayloads,
  previewChars: number | null = null,
): Pick<Trace, PayloadName | 'damaged'> {
  const isWrong = packed.checksum !== null && packed.checksum !== checksumOf(packed);
  const unpacked: Record<string, string | null> = {};
  const damaged: PayloadName[] = [];
  for (const { name, bit, isPreviewed, isMetadata } of payloads) {
    const bytes = packed[name];
    const stored = bytes && { bytes, isZstd: (packed.zstdMask & bit) !== 0 };
    const charsMax = isPreviewed ? previewChars : null;
    const text = stored && !isWrong ? textOfPayload(stored, charsMax) : null;
    unpacked[name] = isMetadata && text !== null && !isJson(text) ? null : text;
    if (bytes !== null && unpacked[name] === null) damaged.push(name);
  }
  const texts = unpacked as Pick<Trace, PayloadName>;
  return damaged.length === 0 ? texts : { ...texts, damaged };
}

/** Metadata is stored as JSON. Damage that the checksum would show is found here if the checksum was not read. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function textOfPayload(stored: StoredPayload, previewChars: number | null): string | null {
  return previewChars === null ? decodePayload(stored) : beginningOf(stored, previewChars);
}

/** The metadata of a trace as JSON; null if it has none or if it is damaged. Consumes the bytes. */
export function metadataText(bytes: Uint8Array | null, zstdMask: number | null): string | null {
  if (bytes === null) return null;
  const isZstd = ((zstdMask ?? 0) & (traceFields.metadata.zstdBit ?? 0)) !== 0;
  const text = decodePayload({ bytes, isZstd });
  return text !== null && isJson(text) ? text : null;
}

/** Whether one of the payloads that a preview would show contains the UTF-8 bytes of a text. */
export function hasText(packed: PackedPayloads, text: Buffer): boolean {
  return payloads.some(({ name, bit, isPreviewed }) => {
    const bytes = isPreviewed ? packed[name] : null;
    if (bytes === null) return false;
    const raw = (packed.zstdMask & bit) === 0 ? bytes : decompress(bytes);
    return raw !== null && Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).includes(text);
  });
}

/** The payloads of a trace that are damaged. Consumes the bytes. */
export function damagedPayloads(packed: PackedPayloads): readonly PayloadName[] {
  return unpackPayloads(packed).damaged ?? [];
}

/** The approximate memory that they use. */
export function packedBytes(packed: PackedPayloads): number {
  return payloadNames.reduce((bytes, name) => bytes + (packed[name]?.length ?? 0), 0);
}

/** The frame's own checksum finds damage if the checksum of the trace is not read, or is missing in a file from before it. */
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

/** Null if the bytes are damaged. Consumes the bytes. */
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

/**
 * The first characters of a payload of which only the first `previewStoredBytes` may be there. Null if they are damaged. Of a long text
 * only the first block is decompressed, and its checksum at the end is not read.
 */
export function beginningOf(stored: StoredPayload, charsMax: number): string | null {
  try {
    const { size, firstBlockEnd } = stored.isZstd ? frameOf(stored.bytes) : uncompressed;
    const isWhole = stored.isZstd && size <= blockBytesMax;
    const text = isWhole
      ? decodePayload(stored)
      : textOf(
          stored.isZstd ? decompressStart(stored.bytes, firstBlockEnd) : stored.bytes,
          charsMax,
        );
    const beginning = text?.slice(0, charsMax) ?? null;
    return beginning === null || beginning.isWellFormed() ? beginning : beginning.slice(0, -1);
  } catch {
    return null;
  }
}

/** Text that may end in the middle of a character. */
function textOf(raw: Uint8Array, charsMax: number): string {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  return decoder.decode(raw.subarray(0, charsMax * utf8BytesPerChar), { stream: true });
}

/** A frame that has no end. */
function decompressStart(bytes: Uint8Array, end: number): Uint8Array {
  return zstdDecompressSync(bytes.subarray(0, end), {
    finishFlush: constants.ZSTD_e_continue,
    chunkSize: blockBytesMax,
  });
}

const blockBytesMax = 128 * 1024;
const uncompressed = { size: 0, firstBlockEnd: 0 };

/**
 * The size of the text and the end of the first block of a zstd frame (RFC 8878, section 3.1.1). A block holds at most 128 KiB of text,
 * while a few hundred bytes may be all of a text of many megabytes.
 */
function frameOf(frame: Uint8Array): { size: number; firstBlockEnd: number } {
  const view = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
  const descriptor = view.readUInt8(4);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const windowBytes = isSingleSegment ? 0 : 1;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] ?? 0;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  const sizeAt = 5 + windowBytes + dictionaryBytes;
  const at = sizeAt + sizeBytes;
  const header = view.readUIntLE(at, 3);
  const isRepeatedByte = ((header >> 1) & 3) === 1;
  return {
    size: sizeOf(view, sizeAt, sizeBytes),
    firstBlockEnd: at + 3 + (isRepeatedByte ? 1 : header >> 3),
  };
}

/** Infinity if the frame does not say. */
function sizeOf(view: Buffer, at: number, bytes: number): number {
  if (bytes === 0) return Infinity;
  if (bytes === 8) return Number(view.readBigUInt64LE(at));
  return view.readUIntLE(at, bytes) + (bytes === 2 ? 256 : 0);
}

/** The most bytes that one UTF-16 code unit needs. */
const utf8BytesPerChar = 3;

function decompress(bytes: Uint8Array): Uint8Array | null {
  try {
    // No valid payload is larger; damaged bytes could claim any size.
    const maxOutputLength = limits.queueBytesMax;
    return zstdDecompressSync(bytes, { chunkSize: likelyBytes(bytes), maxOutputLength });
  } catch {
    return null;
  }
}

/** A buffer size that fits the whole text in most cases, so that it is decompressed in one chunk. Unused memory costs nothing. */
function likelyBytes(packed: Uint8Array): number {
  return Math.min(8 * 1024 * 1024, Math.max(16 * 1024, packed.length * 4));
}

const releaseBytesMin = 256 * 1024;

/** Frees large buffers immediately. The garbage collector sees only a small object and would let hundreds of megabytes accumulate. */
function release(bytes: Uint8Array): void {
  if (bytes.buffer instanceof ArrayBuffer) bytes.buffer.transfer(0);
}
