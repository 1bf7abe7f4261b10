import type { Problem } from './api-types.ts';

/** A field that the server did not accept, and why. It never holds what was sent. */
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
 * What went wrong between this client and the server. `code` is the server's own (docs/errors.md), or one of the client's:
 * `network_error`, `no_reply`, `bad_reply`, `reply_too_large`, `redirected`, `aborted`, `not_serialisable`, `traces_rejected`,
 * `queue_overflow`, `closed`, `given_up`, `client_error`.
 */
export class TraceTallyError extends Error {
  /** The HTTP status, or null where no whole reply came. */
  readonly status: number | null;
  /** Stable: decide by it. */
  readonly code: string;
  readonly detail: string;
  /** For invalid input: one entry for each field that is wrong. In a batch, `traces.3.model` is the field `model` of its fourth trace. */
  readonly errors: readonly FieldError[];
  /** The server's name for the request, which is also in its log. */
  readonly requestId: string | null;
  /** How long the server asked to wait, where it did. */
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

/** The same error, with what it meant for traces in the background. */
export function withWhatItMeant(error: TraceTallyError, meaning: string): TraceTallyError {
  const { status, code, detail, errors, requestId, retryAfterMs, cause } = error;
  return new TraceTallyError({
    status,
    code,
    detail: `${meaning}: ${detail}`,
    errors,
    requestId,
    retryAfterMs,
    cause,
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

/** The error of a reply that is no success, from the server's problem document, or from the status where a proxy in between answered. */
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
    detail: problem.detail ?? `The server answered ${status}.`,
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
