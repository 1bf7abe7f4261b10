import type { ErrorCode } from '../../errors.ts';

/** SQLite's own result codes, https://sqlite.org/rescode.html. The low byte is the kind. */
const kinds = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  notADatabase: 26,
};
const sharedMemorySize = 4874;

export interface StoreFault {
  code: ErrorCode;
  /** After such a fault it is not known what is on the disk: the writer must not go on. */
  isFatal: boolean;
  /** The fault is the store's, so to try the writes one by one would help nobody. */
  isOfStore: boolean;
}

export function faultOf(error: unknown): StoreFault {
  const extended = errcodeOf(error);
  const kind = extended & 0xff;
  // A full disk shows as an I/O error where the shared-memory file cannot grow.
  if (kind === kinds.full || extended === sharedMemorySize) {
    return { code: 'disk_full', isFatal: false, isOfStore: true };
  }
  if (
    kind === kinds.busy ||
    kind === kinds.locked ||
    kind === kinds.cantOpen ||
    kind === kinds.readOnly
  ) {
    return { code: 'store_unavailable', isFatal: false, isOfStore: true };
  }
  if (kind === kinds.ioError || kind === kinds.corrupt || kind === kinds.notADatabase) {
    return { code: 'store_unavailable', isFatal: true, isOfStore: true };
  }
  return { code: 'internal', isFatal: false, isOfStore: false };
}

export function isBusy(error: unknown): boolean {
  return (errcodeOf(error) & 0xff) === kinds.busy;
}

function errcodeOf(error: unknown): number {
  const code = error instanceof Error ? Reflect.get(error, 'errcode') : undefined;
  return typeof code === 'number' ? code : 0;
}
