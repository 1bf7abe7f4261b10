import { traceBodies } from './bodies.ts';
import type { PayloadSizes } from './bodies.ts';
import type { Dataset, Lab } from './lab.ts';
import { writeRequests } from './load.ts';
import type { RequestFile } from './load.ts';

export const writingConnections = 64;

/** `POST /traces` with the key of this database. */
export function postRequests(
  lab: Lab,
  name: string,
  { key }: Dataset,
  sizes: PayloadSizes,
): RequestFile & { bytesMean: number } {
  const bodies = traceBodies(sizes.inputChars > 1_000 ? 200 : 1_000, sizes);
  const bytes = bodies.reduce((sum, body) => sum + Buffer.byteLength(body), 0);
  const requests = bodies.map((body) => ({ method: 'POST' as const, path: '/traces', body }));
  return {
    ...writeRequests(lab.file(`${name}.requests`), key, requests),
    bytesMean: bytes / bodies.length,
  };
}
