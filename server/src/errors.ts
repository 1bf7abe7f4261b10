/**
 * The one table of errors. `title` and `say` are sent to the caller. Details for the operator
 * go into `cause`, which is only logged.
 * `docs/errors.md` explains every code; a test fails if one is missing there.
 */
const table = {
  malformed_request: {
    status: 400,
    title: 'Malformed request',
    say: 'The request is not valid HTTP.',
  },
  malformed_json: {
    status: 400,
    title: 'Malformed JSON',
    say: 'The body is not valid JSON.',
  },
  malformed_utf8: {
    status: 400,
    title: 'Malformed UTF-8',
    say: 'The body is not valid UTF-8.',
  },
  malformed_gzip: {
    status: 400,
    title: 'Malformed gzip',
    say: 'The body is not valid gzip, although its Content-Encoding is gzip.',
  },
  key_missing: {
    status: 401,
    title: 'API key missing',
    say: 'Send the header "Authorization: Bearer <API key>".',
  },
  key_unknown: {
    status: 401,
    title: 'API key unknown',
    say: 'This API key does not exist.',
  },
  key_expired: {
    status: 401,
    title: 'API key expired',
    say: 'This API key has expired.',
  },
  key_revoked: {
    status: 401,
    title: 'API key revoked',
    say: 'This API key was revoked.',
  },
  not_signed_in: {
    status: 401,
    title: 'Not signed in',
    say: 'You are not signed in, or your session has ended. Sign in again.',
  },
  sign_in_code_invalid: {
    status: 401,
    title: 'Sign-in code invalid',
    say: 'This sign-in code does not exist, was already used or has expired.',
  },
  cross_site_request: {
    status: 403,
    title: 'Cross-site request',
    say: 'This request must come from a page of this server.',
  },
  scope_missing: {
    status: 403,
    title: 'Scope missing',
    say: 'This API key does not have the required scope.',
  },
  trace_not_found: {
    status: 404,
    title: 'Trace not found',
    say: 'There is no trace with this id.',
  },
  route_not_found: {
    status: 404,
    title: 'Path not found',
    say: 'There is nothing at this path.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    say: 'This path does not support this method. See the "Allow" header.',
  },
  request_timeout: {
    status: 408,
    title: 'Request timeout',
    say: 'The request did not arrive in time.',
  },
  body_too_large: {
    status: 413,
    title: 'Body too large',
    say: 'The body is larger than this server accepts.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    say: 'Send the body as "Content-Type: application/json", either uncompressed or with "Content-Encoding: gzip".',
  },
  invalid_input: {
    status: 422,
    title: 'Invalid input',
    say: 'The input is not valid; see "errors".',
  },
  idempotency_key_reused: {
    status: 422,
    title: 'Idempotency key reused',
    say: 'This Idempotency-Key was already used for a different request. Use a new key for each new request.',
  },
  question_too_wide: {
    status: 422,
    title: 'Question too wide',
    say: 'Too many traces or groups would have to be read to answer this. Choose a shorter time range, or filter by more fields.',
  },
  too_many_failed_attempts: {
    status: 429,
    title: 'Too many failed attempts',
    say: 'Too many requests with an invalid API key came from this address.',
  },
  rate_limited: {
    status: 429,
    title: 'Rate limit exceeded',
    say: 'Too many requests with this API key in the last minute.',
  },
  headers_too_large: {
    status: 431,
    title: 'Headers too large',
    say: 'The request line and headers are larger than this server accepts.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    say: 'Internal server error. See the server log for this request id.',
  },
  trace_damaged: {
    status: 500,
    title: 'Trace damaged',
    say: 'Part of this trace is damaged in the store and cannot be read.',
  },
  unsupported_transfer_encoding: {
    status: 501,
    title: 'Unsupported transfer encoding',
    say: 'The only supported Transfer-Encoding is "chunked". Use Content-Encoding to compress a body.',
  },
  queue_full: {
    status: 503,
    title: 'Overloaded',
    say: 'Too many writes are waiting. Nothing in this request was stored.',
    retryAfterS: 1,
  },
  reads_busy: {
    status: 503,
    title: 'Overloaded',
    say: 'Too many large replies are in progress for this API key or team. Finish reading or close them, then try again.',
    retryAfterS: 1,
  },
  store_unavailable: {
    status: 503,
    title: 'Store unavailable',
    say: 'The store is not responding.',
    retryAfterS: 5,
  },
  outcome_unknown: {
    status: 503,
    title: 'Outcome unknown',
    say: 'The store failed during the commit, so this request may or may not have been stored. Send it again with the same Idempotency-Key.',
    retryAfterS: 5,
  },
  disk_full: {
    status: 507,
    title: 'Disk full',
    say: "The server's disk is full. Nothing in this request was stored.",
  },
} as const satisfies Record<string, ErrorEntry>;

interface ErrorEntry {
  status: number;
  title: string;
  say: string;
  retryAfterS?: number;
}

export type ErrorCode = keyof typeof table;

export const errorTable: Readonly<Record<ErrorCode, ErrorEntry>> = table;

export interface FieldError {
  field: string;
  message: string;
}

export interface FailDetails {
  /** Replaces the table's sentence if there is a more specific one. */
  say?: string;
  errors?: readonly FieldError[];
  retryAfterS?: number;
  headers?: Readonly<Record<string, string>>;
  /** For the log only. */
  cause?: unknown;
}

/** An error that a caller may see, by its code. */
export class Failure extends Error {
  readonly code: ErrorCode;
  readonly details: FailDetails;

  constructor(code: ErrorCode, details: FailDetails = {}) {
    super(details.say ?? errorTable[code].say, { cause: details.cause });
    this.name = 'Failure';
    this.code = code;
    this.details = details;
  }
}

export function fail(code: ErrorCode, details?: FailDetails): never {
  throw new Failure(code, details);
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The cause of a failure, for the log and for operators. */
export function reasonOf({ message, details: { cause } }: Failure): string {
  if (cause instanceof Error) return cause.message;
  return typeof cause === 'string' ? cause : message;
}

/** An operator's mistake: shown on the terminal as one sentence, without a stack trace. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError';
}
