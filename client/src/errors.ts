import type { Problem } from './api-types.ts';

/** A field that the server rejected, and why. It never contains what was sent. */
export interface FieldError {
  field: string;
  message: string;
}

export interface TraceTallyErrorParts {
  status?: number | null;
  code: string;
  detail: string;
  errors?: readonly FieldError[];
  requestId?: string | null;
  retryAfterMs?: number | null;
  cause?: unknown;
}

const errorsShownMax = 3;

/**
 * A failure of a request or of background delivery. `code` comes from the server (docs/errors.md) or is one of the client's own:
 * `network_error`, `no_reply`, `bad_reply`, `reply_too_large`, `redirected`, `aborted`, `not_serialisable`, `no_api_key`; and for
 * `onError` also `traces_rejected`, `queue_overflow`, `closed`, `given_up`, `client_error`, `mask_failed`.
 */
export class TraceTallyError extends Error {
  /** The HTTP status, or null if there was no complete reply. */
  readonly status: number | null;
  /** Its meaning never changes: use it to distinguish errors. */
  readonly code: string;
  readonly detail: string;
  /** For invalid input: one entry per rejected field. In a batch, `traces.3.model` is the field `model` of the fourth trace. */
  readonly errors: readonly FieldError[];
  /** The server's id of the request, which is also in the server log. */
  readonly requestId: string | null;
  /** How long the server asked to wait, or null if it did not. */
  readonly retryAfterMs: number | null;

  constructor(parts: TraceTallyErrorParts) {
    const {
      status = null,
      code,
      detail,
      errors = [],
      requestId = null,
      retryAfterMs = null,
    } = parts;
    super(messageOf(code, status, detail, errors), { cause: parts.cause });
    this.name = 'TraceTallyError';
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.errors = errors;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The same error, prefixed with its consequence for queued traces. */
export function withConsequence(error: TraceTallyError, consequence: string): TraceTallyError {
  const { status, code, detail, errors, requestId, retryAfterMs, cause } = error;
  return new TraceTallyError({
    status,
    code,
    detail: `${consequence}: ${detail}`,
    errors,
    requestId,
    retryAfterMs,
    cause,
  });
}

/** `consequence` says what the missing key means for the caller. */
export function noApiKey(consequence: string): TraceTallyError {
  return new TraceTallyError({
    code: 'no_api_key',
    detail: `${consequence} Set the environment variable TRACETALLY_API_KEY or pass the option "apiKey".`,
  });
}

/** `1 trace`, `2 traces`. */
export function tracesInWords(count: number): string {
  return count === 1 ? '1 trace' : `${count} traces`;
}

function messageOf(
  code: string,
  status: number | null,
  detail: string,
  errors: readonly FieldError[],
): string {
  const shown = errors.slice(0, errorsShownMax).map(({ field, message }) => `${field} ${message}`);
  const more = errors.length > shown.length ? `; and ${errors.length - shown.length} more` : '';
  const fields = shown.length === 0 ? '' : ` (${shown.join('; ')}${more})`;
  return `${code}${status === null ? '' : ` (${status})`}: ${detail}${fields}`;
}

/** From the server's problem document, or only from the status if the reply came from a proxy. */
export function errorOfReply(
  status: number,
  text: string,
  requestId: string | null,
  retryAfterMs: number | null,
): TraceTallyError {
  const problem = parseProblem(text);
  return new TraceTallyError({
    status,
    code: problem.code ?? `http_${status}`,
    detail: problem.detail ?? `The server returned the status ${status}.`,
    errors: problem.errors ?? [],
    requestId: problem.request_id ?? requestId,
    retryAfterMs,
  });
}

function parseProblem(text: string): Partial<Problem> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return {};
    const { code, detail, errors, request_id } = value as Partial<Record<keyof Problem, unknown>>;
    return {
      ...(typeof code === 'string' && { code }),
      ...(typeof detail === 'string' && { detail }),
      ...(typeof request_id === 'string' && { request_id }),
      ...(Array.isArray(errors) && { errors: errors.filter(isFieldError) }),
    };
  } catch {
    return {};
  }
}

function isFieldError(value: unknown): value is FieldError {
  const { field, message } = (value ?? {}) as Partial<FieldError>;
  return typeof field === 'string' && typeof message === 'string';
}
