import type { FastifyInstance } from 'fastify';
import { isDecodable } from './decodable-path.ts';

/** Collects the methods of each path, to distinguish 405 from 404. Returns those of a URL. */
export function watchRoutes(app: FastifyInstance): (url: string) => readonly string[] {
  const methodsByPath = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsByPath.getOrInsertComputed(url, () => new Set());
    for (const name of [method].flat()) methods.add(name);
  });
  return (url) => {
    // A target in absolute form, as sent to proxies, begins with the scheme and the host.
    const path = url.replace(/^https?:\/\/[^/?]*/i, '').split('?', 1)[0] ?? '';
    const allowed = [...methodsByPath].filter(([pattern]) => matches(pattern, path));
    return [...new Set(allowed.flatMap(([, methods]) => [...methods]))].sort();
  };
}

function matches(pattern: string, path: string): boolean {
  const expected = pattern.split('/');
  const actual = path
    .split('/')
    .map((segment) => (isDecodable(segment) ? decodeURIComponent(segment) : segment));
  return (
    expected.length === actual.length &&
    expected.every((part, i) => (part.startsWith(':') ? actual[i] !== '' : part === actual[i]))
  );
}
