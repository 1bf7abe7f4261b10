/**
 * The one table of errors: what is sent to the caller, and the seconds of `Retry-After` if there is one. Details for the operator go
 * into `cause`, which is only logged. `docs/errors.md` explains every code; a test fails if one is missing there.
 */
export const errorTable = {
  malformed_request: entry(400, 'Malformed request', 'The request is not valid HTTP.'),
  malformed_json: entry(400, 'Malformed JSON', 'The body is not valid JSON.'),
  malformed_utf8: entry(400, 'Malformed UTF-8', 'The body is not valid UTF-8.'),
  malformed_encoding: entry(
    400,
    'Malformed encoding',
    'The body is not valid, complete data of its Content-Encoding.',
  ),
  key_missing: entry(401, 'API key missing', 'Send the header "Authorization: Bearer <API key>".'),
  key_unknown: entry(401, 'API key unknown', 'This API key does not exist.'),
  key_expired: entry(401, 'API key expired', 'This API key has expired.'),
  key_revoked: entry(401, 'API key revoked', 'This API key was revoked.'),
  not_signed_in: entry(
    401,
    'Not signed in',
    'You are not signed in, or your session has ended. Sign in again.',
  ),
  sign_in_code_invalid: entry(
    401,
    'Sign-in code invalid',
    'This sign-in code does not exist, was already used or has expired.',
  ),
  cross_site_request: entry(
    403,
    'Cross-site request',
    'This request must come from a page on this server.',
  ),
  scope_missing: entry(403, 'Scope missing', 'This API key does not have the required scope.'),
  trace_not_found: entry(404, 'Trace not found', 'There is no trace with this id.'),
  route_not_found: entry(404, 'Path not found', 'There is nothing at this path.'),
  method_not_allowed: entry(
    405,
    'Method not allowed',
    'This path does not support this method. See the "Allow" header.',
  ),
  request_timeout: entry(408, 'Request timeout', 'The request did not arrive in time.'),
  body_too_large: entry(413, 'Body too large', 'The body is larger than this server accepts.'),
  unsupported_media_type: entry(
    415,
    'Unsupported media type',
    'Send JSON as "Content-Type: application/json" (OpenTelemetry may be protobuf), uncompressed or with "Content-Encoding: gzip" or "zstd".',
  ),
  body_too_complex: entry(
    422,
    'Body too complex',
    'Reading this body took too much time or memory. Nothing in this request was stored. Send less, or simpler data, at once.',
  ),
  invalid_input: entry(422, 'Invalid input', 'The input is not valid; see "errors".'),
  idempotency_key_reused: entry(
    422,
    'Idempotency key reused',
    'This Idempotency-Key was already used for a different request. Use a new key for each new request.',
  ),
  question_too_wide: entry(
    422,
    'Question too wide',
    'Too many traces or groups would have to be read to answer this. Choose a shorter time range, or filter by more fields.',
  ),
  too_many_failed_attempts: entry(
    429,
    'Too many failed attempts',
    'Too many requests with an invalid API key or sign-in code came from this address.',
  ),
  rate_limited: entry(
    429,
    'Rate limit exceeded',
    'Too many requests with this API key in the last minute.',
  ),
  headers_too_large: entry(
    431,
    'Headers too large',
    'The request line and headers are larger than this server accepts.',
  ),
  internal: entry(
    500,
    'Internal error',
    'Internal server error. See the server log for this request id.',
  ),
  trace_damaged: entry(
    500,
    'Trace damaged',
    'Part of this trace is damaged in the store and cannot be read.',
  ),
  unsupported_transfer_encoding: entry(
    501,
    'Unsupported transfer encoding',
    'The only supported Transfer-Encoding is "chunked". To compress a body, use Content-Encoding: gzip.',
  ),
  queue_full: entry(
    503,
    'Overloaded',
    'Too many writes or request bytes from this team or API key are waiting. Nothing in this request was stored.',
    1,
  ),
  reads_busy: entry(
    503,
    'Overloaded',
    'Too many large replies are in progress for this API key or team. Finish reading or close them, then try again.',
    1,
  ),
  store_unavailable: entry(503, 'Store unavailable', 'The store is not responding.', 5),
  outcome_unknown: entry(
    503,
    'Outcome unknown',
    'The store failed during the commit, so this request may or may not have been stored. Send it again with the same Idempotency-Key.',
    5,
  ),
  disk_full: entry(
    507,
    'Disk full',
    "The server's disk is full. If this was a write, nothing of it was stored.",
  ),
};

export type ErrorCode = keyof typeof errorTable;

function entry(status: number, title: string, say: string, retryAfterS?: number) {
  return { status, title, say, retryAfterS };
}

export interface FieldError {
  field: string;
  message: string;
}

interface FailDetails {
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

/** The caller has hung up, so the reply reaches no one. It is not logged as a failure. */
export class CallerLeft extends Failure {
  constructor() {
    super('reads_busy');
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
