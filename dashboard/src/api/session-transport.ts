import { readSettings } from '../../../client/src/settings.ts';
import { Transport } from '../../../client/src/transport.ts';
import { baseUrl } from './base-url.ts';

/** One trace may be 5 MiB, on a slow line. */
export const requestTimeoutMs = 30_000;

/** The server takes a session only together with this header, which pages of other origins cannot send. */
const dashboardHeader = 'x-tracetally-dashboard';

/** Before the page knows the team of its session. */
export const anyTeam = 'any';

/** The header for requests about this team. After a sign-in to another team, the server refuses them. */
export function dashboardHeaders(teamId: string): Record<string, string> {
  return { [dashboardHeader]: teamId };
}

/**
 * The client's transport with the session cookie in place of a key, which the page does not have. It tries once: the page shows what
 * went wrong at once, and tries again by itself.
 */
export function openTransport(teamId: string): Transport {
  const fetchWithSession: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    headers.delete('authorization');
    for (const [name, value] of Object.entries(dashboardHeaders(teamId))) headers.set(name, value);
    return fetch(input, { ...init, headers, credentials: 'same-origin' });
  };
  return new Transport(
    readSettings({
      // The client insists on one; it is never sent.
      apiKey: 'session',
      baseUrl: baseUrl(),
      fetch: fetchWithSession,
      maxRetries: 0,
      requestTimeoutMs,
    }),
  );
}
