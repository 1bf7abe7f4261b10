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
export function uuidV7Bytes(us: number): Buffer {
  const bytes = Buffer.allocUnsafe(16);
  const at = randomOffset();
  pool.copy(bytes, 8, at, at + 8);
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  setUuidTime(bytes, us);
  return bytes;
}

/** Replaces the microsecond of a version 7 UUID. */
export function setUuidTime(bytes: Buffer, us: number): void {
  const ms = Math.floor(us / 1000);
  const share = Math.floor(((us - ms * 1000) * 4096) / 1000);
  bytes.writeUIntBE(ms, 0, 6);
  bytes[6] = 0x70 | (share >> 8);
  bytes[7] = share & 0xff;
}

export function uuidV7(us: number): string {
  return uuidText(uuidV7Bytes(us));
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

/** Through one buffer: the text of every new trace's id is written here, and joining slices takes twice as long. */
export function uuidText(bytes: Uint8Array): string {
  for (let i = 0; i < places.length; i++) {
    const [byte = 0, at = 0] = [bytes[i], places[i]];
    scratch[at] = digits[byte >> 4] ?? 0;
    scratch[at + 1] = digits[byte & 0xf] ?? 0;
  }
  return scratch.toString('latin1');
}

const scratch = Buffer.from('00000000-0000-0000-0000-000000000000');
const digits = Buffer.from('0123456789abcdef');
/** Where the digits of each byte begin. */
const places = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
