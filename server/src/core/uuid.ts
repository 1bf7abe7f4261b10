import { randomFillSync } from 'node:crypto';

const poolBytes = 8 * 512;
const pool = Buffer.alloc(poolBytes);
let poolAt = poolBytes;

/** Takes eight random bytes from a pool, since one system call per id would be slow. */
function randomOffset(): number {
  if (poolAt === poolBytes) {
    randomFillSync(pool);
    poolAt = 0;
  }
  poolAt += 8;
  return poolAt - 8;
}

/**
 * A version 7 UUID for this microsecond: 48 bits for the millisecond and the next 12 bits for the fraction of it
 * (RFC 9562, section 6.2, method 3), so that ids sort by time.
 */
export function uuidV7(us: number): string {
  const ms = Math.floor(us / 1000);
  const share = Math.floor(((us - ms * 1000) * 4096) / 1000);
  const at = randomOffset();
  const bytes = Buffer.allocUnsafe(16);
  bytes.writeUIntBE(ms, 0, 6);
  bytes[6] = 0x70 | (share >> 8);
  bytes[7] = share & 0xff;
  pool.copy(bytes, 8, at, at + 8);
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return uuidText(bytes);
}

/** The millisecond in the time part of an id. */
export function uuidMs(uuid: string): number {
  return Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16);
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The id in canonical form, or null if the text is not a UUID. */
export function parseUuid(text: string): string | null {
  return uuidPattern.test(text) ? text.toLowerCase() : null;
}

export function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex');
}

export function uuidText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
  return (
    `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}` +
    `-${hex.slice(16, 20)}-${hex.slice(20)}`
  );
}
