import type { FastifyInstance } from 'fastify';

/** The methods of each path, to distinguish 405 from 404. */
export interface MethodTable {
  allowedAt(url: string): readonly string[];
}

export function watchRoutes(app: FastifyInstance): MethodTable {
  const methodsByPath = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsByPath.get(url) ?? new Set();
    for (const name of [method].flat()) methods.add(name);
    methodsByPath.set(url, methods);
  });
  return {
    allowedAt(url) {
      // A target in absolute form, as sent to proxies, begins with the scheme and the host.
      const path = url.replace(/^https?:\/\/[^/?]*/i, '').split('?', 1)[0] ?? '';
      const allowed = [...methodsByPath].filter(([pattern]) => matches(pattern, path));
      return [...new Set(allowed.flatMap(([, methods]) => [...methods]))].sort();
    },
  };
}

function matches(pattern: string, path: string): boolean {
  const expected = pattern.split('/');
  const actual = path.split('/').map(decoded);
  return (
    expected.length === actual.length &&
    expected.every((part, i) => (part.startsWith(':') ? actual[i] !== '' : part === actual[i]))
  );
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
