import { traceBodies } from './bodies.ts';
import type { PayloadSizes } from './bodies.ts';
import type { Lab } from './lab.ts';
import { writeRequests } from './load.ts';
import type { RequestFile } from './load.ts';

export const writingConnections = 64;

/** `POST /traces`, each request with the next of these keys. */
export function postRequests(
  lab: Lab,
  name: string,
  keys: readonly string[],
  sizes: PayloadSizes,
): RequestFile & { bytesMean: number } {
  const bodies = traceBodies(sizes.inputChars > 1_000 ? 200 : 1_000, sizes);
  const bytes = bodies.reduce((sum, body) => sum + Buffer.byteLength(body), 0);
  const requests = bodies.map((body, i) => ({
    method: 'POST' as const,
    path: '/traces',
    key: keys[i % keys.length] ?? '',
    body,
  }));
  return {
    ...writeRequests(lab.file(`${name}.requests`), requests),
    bytesMean: bytes / bodies.length,
  };
}
