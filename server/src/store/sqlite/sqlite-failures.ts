import { Failure } from '../../errors.ts';
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
/** Extended codes. */
const writeError = 778;
const sharedMemorySize = 4874;

export interface StoreFailure {
  code: ErrorCode;
  /** It is not known what is on the disk, so the writer must stop. */
  isFatal: boolean;
  /** The store itself failed, so smaller batches would fail too. */
  isOfStore: boolean;
}

export const diskFull: StoreFailure = { code: 'disk_full', isFatal: false, isOfStore: true };

export function failureOf(error: unknown): StoreFailure {
  if (error instanceof Failure) return { code: error.code, isFatal: false, isOfStore: false };
  const extended = errcodeOf(error);
  const kind = extended & 0xff;
  // A full disk is reported as an I/O error if the shared-memory file cannot grow.
  if (kind === kinds.full || extended === sharedMemorySize) return diskFull;
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

/** The same methods, but SQLite errors are turned into a `Failure`. */
export function translateFailures<T extends object>(methods: T): T {
  const translated = Object.entries(methods).map(([name, method]: [string, unknown]) => [
    name,
    async (...args: unknown[]) => {
      try {
        return await (method as (...args: unknown[]) => unknown)(...args);
      } catch (error) {
        const { code, isOfStore } = failureOf(error);
        throw isOfStore ? new Failure(code, { cause: error }) : error;
      }
    },
  ]);
  return Object.fromEntries(translated) as T;
}

/** Whether a write failed. After a failed sync, in contrast, it is not known what is on the disk. */
export function isWriteError(error: unknown): boolean {
  return errcodeOf(error) === writeError;
}

/** Whether a file is not a database, or a damaged one. */
export function isDamaged(error: unknown): boolean {
  const kind = errcodeOf(error) & 0xff;
  return kind === kinds.corrupt || kind === kinds.notADatabase;
}

export function isBusy(error: unknown): boolean {
  return (errcodeOf(error) & 0xff) === kinds.busy;
}

function errcodeOf(error: unknown): number {
  const code = error instanceof Error ? Reflect.get(error, 'errcode') : undefined;
  return typeof code === 'number' ? code : 0;
}
