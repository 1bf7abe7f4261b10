import { randomFillSync } from 'node:crypto';

const poolBytes = 8 * 512;
const pool = Buffer.alloc(poolBytes);
let poolAt = poolBytes;

/** Eight random bytes from a pool, since asking the system for each id costs more than the id. */
function randomOffset(): number {
  if (poolAt === poolBytes) {
    randomFillSync(pool);
    poolAt = 0;
  }
  poolAt += 8;
  return poolAt - 8;
}

/**
 * A UUID of version 7 whose time part is this microsecond: the millisecond in 48 bits, and the share of the
 * millisecond in the next 12 (RFC 9562, section 6.2, method 3), so that ids sort as their times do.
 */
export function uuidV7(us: number): string {
  const ms = Math.floor(us / 1000);
  const share = Math.floor(((us - ms * 1000) * 4096) / 1000);
  const time = ms.toString(16).padStart(12, '0');
  const at = randomOffset();
  const variant = (((pool[at] ?? 0) & 0x3f) | 0x80).toString(16);
  const random = pool.toString('hex', at + 1, at + 8);
  return (
    `${time.slice(0, 8)}-${time.slice(8)}-7${share.toString(16).padStart(3, '0')}` +
    `-${variant}${random.slice(0, 2)}-${random.slice(2)}`
  );
}

/** The millisecond in the time part of an id. */
export function uuidMs(uuid: string): number {
  return Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16);
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The id in its one canonical spelling, or null where the text is no UUID. */
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
