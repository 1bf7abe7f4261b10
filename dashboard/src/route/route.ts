/** The current view. It is stored only in the fragment, which is never sent to a server. */
export type Route =
  | { kind: 'overview' }
  | { kind: 'traces'; page: number }
  | { kind: 'trace'; id: string }
  | { kind: 'unknown' };

export function parseRoute(fragment: string): Route {
  const [path = '', query = ''] = fragment.replace(/^#/, '').split('?', 2);
  if (path === '' || path === '/') return { kind: 'overview' };
  if (path === '/traces') return { kind: 'traces', page: readPage(query) };
  const id = /^\/traces\/([^/]+)$/.exec(path)?.[1];
  return id === undefined ? { kind: 'unknown' } : { kind: 'trace', id: decode(id) };
}

export const overviewHref = '#/';

export function tracesHref(page = 1): string {
  return page === 1 ? '#/traces' : `#/traces?page=${page}`;
}

export function traceHref(id: string): string {
  return `#/traces/${encodeURIComponent(id)}`;
}

function readPage(query: string): number {
  const text = new URLSearchParams(query).get('page') ?? '';
  return /^[1-9][0-9]{0,8}$/.test(text) ? Number(text) : 1;
}

export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
