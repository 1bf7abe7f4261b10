import pg from 'pg';
import { Failure, messageOf } from '../../errors.ts';
import type { ErrorCode } from '../../errors.ts';

/** The connection is lost, or the server does not respond on it. A statement on it may still be running. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

export interface StoreFailure {
  code: ErrorCode;
  /** The store itself failed, so smaller batches would fail too. */
  isOfStore: boolean;
  /** Nothing is stored, and a retry may succeed. */
  isWorthRetry: boolean;
}

/** SQLSTATEs, https://www.postgresql.org/docs/current/errcodes-appendix.html. The first two characters are the class. */
const states = {
  serializationFailure: '40001',
  deadlockDetected: '40P01',
  diskFull: '53100',
  lockNotAvailable: '55P03',
  queryCancelled: '57014',
  adminShutdown: '57P01',
  typeMismatch: '42804',
  functionMissing: '42883',
  notInState: '55000',
  statementUnknown: '26000',
  statementKnown: '42P05',
};
const storeClasses = new Set([
  '08', // connection
  '25', // transaction state, such as a server that has become read-only
  '28', // authorization
  '3D', // no such database
  '53', // resources
  '55', // lock not available
  '57', // operator: shutdown, cancel, starting up
  '58', // system, such as an I/O error
  'F0', // configuration
  'XX', // internal, such as damaged data
]);

export function failureOf(error: unknown): StoreFailure {
  const mayBeRepaired = [isNameUnknown, isTypeMismatch, isFunctionMissing];
  if (error instanceof ConnectionLost || mayBeRepaired.some((is) => is(error))) {
    return { code: 'store_unavailable', isOfStore: true, isWorthRetry: true };
  }
  const state = stateOf(error);
  if (state === states.serializationFailure || state === states.deadlockDetected) {
    return { code: 'store_unavailable', isOfStore: true, isWorthRetry: true };
  }
  if (state === states.diskFull) {
    return { code: 'disk_full', isOfStore: true, isWorthRetry: false };
  }
  if (storeClasses.has(state.slice(0, 2))) {
    return { code: 'store_unavailable', isOfStore: true, isWorthRetry: false };
  }
  return { code: 'internal', isOfStore: false, isWorthRetry: false };
}

/** Sorts the driver's errors into two kinds: an error reply of the server, or a lost connection. */
export function sortError(error: unknown): Error {
  const state = stateOf(error);
  // If possible, a server sends one of these errors before it closes a connection.
  const isEnd = state.startsWith('08') || state.startsWith('57P');
  if (error instanceof pg.DatabaseError && !isEnd) return error;
  return new ConnectionLost(wordsOf(error), { cause: error });
}

/** The server has ended the connection and said so. Replies come in order: a statement without a reply was not executed. */
export function isEndedByServer(error: unknown): boolean {
  return error instanceof ConnectionLost && stateOf(error.cause) === states.adminShutdown;
}

/** Prepared-statement mismatch: a connection pooler is in between. Nothing was done. */
export function isNameUnknown(error: unknown): boolean {
  const state = stateOf(error);
  return state === states.statementUnknown || state === states.statementKnown;
}

/** Records were sent for another version of a table. Nothing was done. */
export function isTypeMismatch(error: unknown): boolean {
  return stateOf(error) === states.typeMismatch;
}

/** The function that stores traces was dropped. Nothing was done. */
export function isFunctionMissing(error: unknown): boolean {
  return stateOf(error) === states.functionMissing;
}

/** The function that stores traces has found that a team was moved to another node of the cluster. Nothing is stored. */
export function isOnOtherNode(error: unknown): boolean {
  return stateOf(error) === states.notInState;
}

/** An error that PostgreSQL or an extension has no class for, such as one between the nodes of a cluster. */
export function isInternal(error: unknown): boolean {
  return stateOf(error).startsWith('XX');
}

/** A lock was not free within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return stateOf(error) === states.lockNotAvailable;
}

/** A statement took longer than `statement_timeout`. */
export function isCancelled(error: unknown): boolean {
  return stateOf(error) === states.queryCancelled;
}

/** Turns an error into the failure that callers of the store may see. */
export function asFailure(error: unknown): unknown {
  const { code } = failureOf(error);
  return code === 'internal' ? error : new Failure(code, { cause: error });
}

export function stateOf(error: unknown): string {
  return error instanceof pg.DatabaseError ? (error.code ?? '') : '';
}

/** If a host name has several addresses, the driver throws one error per address, in an error without a message. */
export function wordsOf(error: unknown): string {
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return messageOf(first ?? error);
}
