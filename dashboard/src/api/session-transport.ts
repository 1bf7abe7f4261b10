import { readSettings, Transport } from '../../../client/src/reading.ts';
import { baseUrl } from './base-url.ts';

/** A trace may be 5 MiB, and the connection may be slow. */
export const requestTimeoutMs = 30_000;

/** The server accepts a session only together with this header, which pages from other origins cannot send. */
const dashboardHeader = 'x-tracetally-dashboard';

/** Before the page knows the team of its session. */
export const anyTeam = 'any';

/** The header for requests about this team. After a sign-in to another team, the server refuses them. */
export function dashboardHeaders(teamId: string): Record<string, string> {
  return { [dashboardHeader]: teamId };
}

/**
 * The client's transport with the session cookie instead of a key, which the page does not have. It does not retry: the page shows the
 * error immediately and retries by itself.
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
      // The client requires a key; it is never sent.
      apiKey: 'session',
      baseUrl: baseUrl(),
      fetch: fetchWithSession,
      maxRetries: 0,
      requestTimeoutMs,
    }),
  );
}
