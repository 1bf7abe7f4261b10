import { TraceTallyError, errorOfReply } from '../../../client/src/errors.ts';
import { serialise } from '../../../client/src/transport.ts';
import { baseUrl } from './base-url.ts';
import { anyTeam, dashboardHeaders, openTransport, requestTimeoutMs } from './session-transport.ts';

export interface Team {
  id: string;
  name: string;
}

/** Who is signed in. The session itself is a cookie that the page cannot see. */
export interface SignedIn {
  team: Team;
}

export type CurrentSession =
  | { current: SignedIn; refusal: null }
  /** This browser is not signed in, and why. */
  | { current: null; refusal: TraceTallyError };

export async function readSession(): Promise<CurrentSession> {
  try {
    const reply = await openTransport(anyTeam).try({ method: 'GET', path: '/session' });
    return { current: reply as SignedIn, refusal: null };
  } catch (error) {
    if (error instanceof TraceTallyError && error.status === 401) {
      return { current: null, refusal: error };
    }
    throw error;
  }
}

/** Exchanges a key or a code for a session. */
export async function startSession(secret: { key: string } | { code: string }): Promise<SignedIn> {
  return (await post('/session', secret)) as SignedIn;
}

/** Which team a code signs in to. The code stays valid. */
export async function previewCode(code: string): Promise<SignedIn> {
  return (await post('/session/preview', { code })) as SignedIn;
}

async function post(path: string, body: object): Promise<unknown> {
  const transport = openTransport(anyTeam);
  return transport.try({ method: 'POST', path, body: await transport.prepare(serialise(body)) });
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
