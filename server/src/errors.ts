/**
 * The one table of errors. `title` and `say` are for the caller and reach the wire;
 * what an operator needs to know travels in `cause` and reaches only the log.
 * `docs/errors.md` explains every code; a test fails when one is missing there.
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
    say: 'The body is not valid gzip, though its Content-Encoding says so.',
  },
  key_missing: {
    status: 401,
    title: 'API key missing',
    say: 'Send the header "Authorization: Bearer <API key>".',
  },
  key_unknown: {
    status: 401,
    title: 'API key unknown',
    say: 'No such API key.',
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
    say: 'There is no session, or it has ended. Sign in again.',
  },
  sign_in_code_invalid: {
    status: 401,
    title: 'Sign-in code invalid',
    say: 'This sign-in code is unknown, was used before or has expired.',
  },
  cross_site_request: {
    status: 403,
    title: 'Cross-site request',
    say: 'Only pages of this server may do this.',
  },
  scope_missing: {
    status: 403,
    title: 'Scope missing',
    say: 'This API key may not do this.',
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
    say: 'This path does not take this method; see the header "Allow".',
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
    say: 'Send the body as "Content-Type: application/json", as it is or with "Content-Encoding: gzip".',
  },
  invalid_input: {
    status: 422,
    title: 'Invalid input',
    say: 'The input is not valid; see "errors".',
  },
  idempotency_key_reused: {
    status: 422,
    title: 'Idempotency key reused',
    say: 'This Idempotency-Key came before with another request. Use a new key for a new request.',
  },
  total_cost_too_large: {
    status: 422,
    title: 'Total cost too large',
    say: "The team's total cost would become too large to add up (over 9.2 trillion dollars). Nothing of this request was stored.",
  },
  too_many_failed_attempts: {
    status: 429,
    title: 'Too many failed attempts',
    say: 'Too many requests with a bad API key came from this address.',
  },
  rate_limited: {
    status: 429,
    title: 'Rate limit exceeded',
    say: 'This API key has sent too many requests in this minute.',
  },
  headers_too_large: {
    status: 431,
    title: 'Headers too large',
    say: 'The request line and headers are larger than this server accepts.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    say: 'Something went wrong here. The log of the server tells more, under the request id.',
  },
  trace_damaged: {
    status: 500,
    title: 'Trace damaged',
    say: 'Stored data of this trace is damaged and cannot be read.',
  },
  unsupported_transfer_encoding: {
    status: 501,
    title: 'Unsupported transfer encoding',
    say: 'The only Transfer-Encoding that this server reads is "chunked". Use Content-Encoding to compress a body.',
  },
  queue_full: {
    status: 503,
    title: 'Overloaded',
    say: 'Too many writes are waiting. Nothing of this request was stored.',
    retryAfterS: 1,
  },
  reads_busy: {
    status: 503,
    title: 'Overloaded',
    say: 'Too many large replies are being read with this API key or by this team. Read or close them, then try again.',
    retryAfterS: 1,
  },
  store_unavailable: {
    status: 503,
    title: 'Store unavailable',
    say: 'The store does not answer.',
    retryAfterS: 5,
  },
  outcome_unknown: {
    status: 503,
    title: 'Outcome unknown',
    say: 'The store broke off while it wrote, so it is not known whether this was stored. Send it again with the same Idempotency-Key.',
    retryAfterS: 5,
  },
  disk_full: {
    status: 507,
    title: 'Disk full',
    say: 'The disk of the server is full. Nothing of this request was stored.',
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
  /** Replaces the table's sentence where there is more to say to the caller. */
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

/** The words of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What lies behind a failure, for the log and for operators. */
export function reasonOf({ message, details: { cause } }: Failure): string {
  if (cause instanceof Error) return cause.message;
  return typeof cause === 'string' ? cause : message;
}

/** A mistake of the operator: shown on the terminal as one sentence, without a stack. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError';
}
