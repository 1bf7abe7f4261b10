import type { Dataset, Lab } from './lab.ts';
import { writeRequests } from './load.ts';
import type { RequestFile } from './load.ts';
import type { Running } from './processes.ts';

export const readingConnections = 16;

/** Every GET endpoint, by its name in the table. */
export async function readRequests(
  lab: Lab,
  dataset: Dataset,
  { url }: Running,
): Promise<Record<string, RequestFile>> {
  const ids = await someIds(dataset, url);
  const pages = spread(50, Math.ceil(dataset.traces / 20));
  const paths: Record<string, string[]> = {
    'GET /traces': pages.map((page) => `/traces?page=${page}`),
    'GET /traces/{id}': ids.map((id) => `/traces/${id}`),
    overview: ['/analytics/overview'],
    'by-model': ['/analytics/by-model'],
    'by-feature': ['/analytics/by-feature'],
    daily: ['/analytics/daily'],
  };
  return Object.fromEntries(
    Object.entries(paths).map(([name, targets]) => {
      const file = lab.file(`${name.replaceAll(/[^a-z-]/gi, '_')}-${dataset.name}.requests`);
      const { key } = dataset;
      const requests = targets.map((path) => ({ method: 'GET' as const, path, key }));
      return [name, writeRequests(file, requests)];
    }),
  );
}

/** Evenly spaced numbers from 1 to `max`. */
function spread(count: number, max: number): number[] {
  return Array.from({ length: count }, (_, i) => 1 + Math.floor((i * (max - 1)) / (count - 1)));
}

/** Ids from all parts of the data. */
async function someIds({ key, traces }: Dataset, url: string): Promise<string[]> {
  const ids: string[] = [];
  for (const page of spread(40, Math.ceil(traces / 20))) {
    const reply = await fetch(`${url}/traces?page=${page}&omit=input,output`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const body = (await reply.json()) as { traces: { id: string }[] };
    ids.push(...body.traces.map(({ id }) => id));
  }
  return ids;
}
