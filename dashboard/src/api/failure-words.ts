import { TraceTallyError } from '../../../client/src/errors.ts';

/** What went wrong, for people. */
export interface FailureWords {
  title: string;
  detail: string;
  /** The server's name for the request, which is also in its log. */
  requestId: string | null;
}

const knownCodes: Readonly<Record<string, readonly [title: string, detail: string]>> = {
  key_missing: ['No key was sent', 'Sign in with an API key.'],
  not_signed_in: ['You are signed out', 'The session has ended, or you signed out in another tab.'],
  sign_in_code_invalid: [
    'This sign-in link or code is no longer valid',
    'Each works once, for a few minutes. Get a new one: tracetally sign-in.',
  ],
  key_unknown: ['This key is not known here', 'Check that it was copied whole.'],
  key_revoked: ['This key was revoked', 'Sign in with another one.'],
  key_expired: ['This key has expired', 'Sign in with a newer one.'],
  scope_missing: [
    'This key may only record',
    'Reading needs a key with the scope "read" or "full".',
  ],
  trace_not_found: [
    'No such trace',
    'It does not exist, or it belongs to another team than yours.',
  ],
  trace_damaged: [
    'This trace is damaged',
    'Some of its stored text cannot be read any more. The list of traces shows the rest of it.',
  ],
  network_error: ['The server cannot be reached', 'Is it running, and is your network up?'],
  no_reply: ['The server did not answer in time', 'It may be busy, or the network slow.'],
  bad_reply: ['Something else answered', 'The reply is not one of TraceTally.'],
  reply_too_large: ['The reply is too large', 'It is longer than this page can show.'],
  redirected: ['Something else answered', 'The request was sent on to another address.'],
  store_unavailable: ['The server cannot read its store', 'It is stopping, or its database is.'],
};

export function failureWords(error: unknown): FailureWords {
  if (!(error instanceof TraceTallyError)) {
    const detail = error instanceof Error ? error.message : String(error);
    return { title: 'Something went wrong in this page', detail, requestId: null };
  }
  const { code, requestId } = error;
  if (code === 'too_many_failed_attempts') {
    return {
      title: 'Too many tries with a wrong key or code',
      detail: waitWords(error),
      requestId,
    };
  }
  if (code === 'rate_limited') {
    return { title: 'Too many requests with this key', detail: waitWords(error), requestId };
  }
  const isOurs = (error.status ?? 0) >= 500;
  const title = isOurs ? 'Something went wrong in the server' : 'The server refused';
  const [knownTitle, knownDetail] = knownCodes[code] ?? [title, error.detail];
  return { title: knownTitle, detail: knownDetail, requestId };
}

function waitWords({ retryAfterMs }: TraceTallyError): string {
  return retryAfterMs === null
    ? 'Wait a little, then try again.'
    : `Wait ${Math.ceil(retryAfterMs / 1_000)} s, then try again.`;
}
