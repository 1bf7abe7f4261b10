import { TraceTallyError } from '../../../client/src/reading.ts';

/** What went wrong, as the page shows it. */
export interface FailureWords {
  title: string;
  detail: string;
  /** The server's id for the request, which is also in its log. */
  requestId: string | null;
}

const knownCodes: Readonly<Record<string, readonly [title: string, detail: string]>> = {
  key_missing: ['No key was sent', 'Sign in with an API key.'],
  not_signed_in: ['You are signed out', 'The session has ended, or you signed out in another tab.'],
  sign_in_code_invalid: [
    'This sign-in link or code is no longer valid',
    'A link or code works once and expires after a few minutes. Get a new one with "tracetally sign-in".',
  ],
  key_unknown: ['Unknown API key', 'Check that you copied all of it.'],
  key_revoked: ['This key was revoked', 'Sign in with another key.'],
  key_expired: ['This key has expired', 'Sign in with a newer key.'],
  scope_missing: [
    'This key can only record traces',
    'Reading needs a key with the scope "read" or "full".',
  ],
  trace_not_found: ['Trace not found', 'It does not exist, or it belongs to another team.'],
  trace_damaged: [
    'This trace is damaged',
    'Some of its stored text can no longer be read. The list of traces shows the rest.',
  ],
  network_error: [
    'Cannot reach the server',
    'Check that the server is running and that you are online.',
  ],
  no_reply: [
    'The server did not respond in time',
    'The server may be busy, or the network may be slow.',
  ],
  bad_reply: [
    'Unexpected reply',
    'The reply did not come from TraceTally. It may have come from a proxy.',
  ],
  reply_too_large: ['The reply is too large', 'This page cannot show a reply of this size.'],
  redirected: ['Unexpected redirect', 'The request was redirected to another address.'],
  store_unavailable: [
    'The server cannot read its database',
    'The server is shutting down, or its database is unavailable.',
  ],
};

export function failureWords(error: unknown): FailureWords {
  if (!(error instanceof TraceTallyError)) {
    const detail = error instanceof Error ? error.message : String(error);
    return { title: 'Something went wrong on this page', detail, requestId: null };
  }
  const { code, requestId } = error;
  if (code === 'too_many_failed_attempts') {
    return {
      title: 'Too many failed sign-in attempts',
      detail: waitWords(error),
      requestId,
    };
  }
  if (code === 'rate_limited') {
    return { title: 'Too many requests with this key', detail: waitWords(error), requestId };
  }
  if (code === 'invalid_input' && error.errors.length > 0) {
    const words = error.errors.map(({ field, message }) => `${field} ${message}.`);
    return { title: 'The server cannot answer this', detail: words.join(' '), requestId };
  }
  if (code === 'question_too_wide') {
    return { title: 'This question is too wide', detail: error.detail, requestId };
  }
  const isOurs = (error.status ?? 0) >= 500;
  const title = isOurs ? 'Something went wrong on the server' : 'The server rejected the request';
  const [knownTitle, knownDetail] = knownCodes[code] ?? [title, error.detail];
  return { title: knownTitle, detail: knownDetail, requestId };
}

function waitWords({ retryAfterMs }: TraceTallyError): string {
  return retryAfterMs === null
    ? 'Wait a moment, then try again.'
    : `Wait ${Math.ceil(retryAfterMs / 1_000)} s, then try again.`;
}
