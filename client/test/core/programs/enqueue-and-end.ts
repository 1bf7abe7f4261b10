/**
 * Enqueues traces and ends, as any script does: `enqueue-and-end.ts URL API_KEY OPTIONS`, options as JSON. When the process exits, it
 * prints the outcome and how long the process took to end.
 */
import { TraceTally } from '../../../src/index.ts';
import type { TraceTallyOptions } from '../../../src/index.ts';

interface ProgramOptions extends TraceTallyOptions {
  clients?: number;
  traces?: number;
  /** Await `close()` at the end. */
  close?: boolean;
  /** Leave the default for `onError`. */
  isHookless?: boolean;
}

const [baseUrl, apiKey, json = '{}'] = process.argv.slice(2);
const {
  clients = 1,
  traces = 250,
  close = false,
  isHookless = false,
  ...options
} = JSON.parse(json) as ProgramOptions;

const all = Array.from({ length: clients }, () => {
  const errors: string[] = [];
  const onError = (error: Error): void => void errors.push(error.message);
  const hooks = isHookless ? {} : { onError };
  return { errors, client: new TraceTally({ baseUrl, apiKey, ...hooks, ...options }) };
});
for (let at = 0; at < traces; at++) {
  for (const { client } of all) client.enqueue({ model: 'm', input: `t${at}` });
}
const listeners = process.listenerCount('beforeExit');
const lastLineMs = performance.now();
process.once('exit', () => {
  const waitedMs = performance.now() - lastLineMs;
  const stats = all.map(({ client }) => client.stats());
  const errors = all.flatMap((each) => each.errors);
  process.stdout.write(JSON.stringify({ stats, errors, listeners, waitedMs }));
});
if (close) await Promise.all(all.map(({ client }) => client.close()));
