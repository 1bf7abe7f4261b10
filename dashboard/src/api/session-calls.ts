import type { Shape } from '../../../client/src/reading.ts';
import { TraceTallyError, errorOfReply, fits, serialise } from '../../../client/src/reading.ts';
import { baseUrl } from './base-url.ts';
import { anyTeam, dashboardHeaders, openTransport, requestTimeoutMs } from './session-transport.ts';

export interface Team {
  id: string;
  name: string;
}

/** Who is signed in. The session itself is a cookie that the page cannot see. */
export interface SignedIn {
  team: Team & {
    /** Where the days of the team begin. */
    time_zone: string;
  };
}

export type CurrentSession =
  | { current: SignedIn; refusal: null }
  /** This browser is not signed in, and why. */
  | { current: null; refusal: TraceTallyError };

export async function readSession(): Promise<CurrentSession> {
  try {
    const call = { method: 'GET', path: '/session', isReply: isSignedIn } as const;
    return { current: await openTransport(anyTeam).try(call), refusal: null };
  } catch (error) {
    if (error instanceof TraceTallyError && error.status === 401) {
      return { current: null, refusal: error };
    }
    throw error;
  }
}

/** Exchanges a key or a code for a session. */
export async function startSession(secret: { key: string } | { code: string }): Promise<SignedIn> {
  return post('/session', secret, isSignedIn);
}

/** Which team a code signs in to. The code stays valid. */
export async function previewCode(code: string): Promise<{ team: Team }> {
  return post('/session/preview', { code }, isPreview);
}

async function post<T>(
  path: string,
  secret: object,
  isReply: (reply: unknown) => reply is T,
): Promise<T> {
  const transport = openTransport(anyTeam);
  const body = await transport.prepare(serialise(secret));
  return transport.try({ method: 'POST', path, body, isReply });
}

const teamShape = { id: 'string', name: 'string' };
const previewShape: Shape<{ team: Team }> = { team: teamShape };
const signedInShape: Shape<SignedIn> = { team: { ...teamShape, time_zone: 'string' } };

function isPreview(reply: unknown): reply is { team: Team } {
  return fits<{ team: Team }>(reply, previewShape);
}

function isSignedIn(reply: unknown): reply is SignedIn {
  return fits<SignedIn>(reply, signedInShape);
}

export async function endSession(): Promise<void> {
  const response = await fetch(`${baseUrl()}session`, {
    method: 'DELETE',
    headers: dashboardHeaders(anyTeam),
    credentials: 'same-origin',
    signal: AbortSignal.timeout(requestTimeoutMs),
  });
  if (!response.ok) {
    const requestId = response.headers.get('x-request-id');
    throw errorOfReply(response.status, await response.text(), requestId, null);
  }
}
