/** Enqueues and comes to its end, as any script does: URL, key, and settings as JSON; prints what became of the traces at the very end. */
import { TraceTally } from '../../../src/index.ts';
import type { TraceTallyOptions } from '../../../src/index.ts';

const [baseUrl, apiKey, settings = '{}'] = process.argv.slice(2);
const {
  clients = 1,
  traces = 250,
  ...options
} = JSON.parse(settings) as TraceTallyOptions & {
  clients?: number;
  traces?: number;
};

const all = Array.from({ length: clients }, () => {
  const errors: string[] = [];
  const onError = (error: Error): void => void errors.push(error.message);
  return { errors, client: new TraceTally({ baseUrl, apiKey, onError, ...options }) };
});
for (let at = 0; at < traces; at++) {
  for (const { client } of all) client.enqueue({ model: 'm', input: `t${at}` });
}
const listeners = process.listenerCount('beforeExit');
process.once('exit', () => {
  const stats = all.map(({ client }) => client.stats());
  const errors = all.flatMap((each) => each.errors);
  process.stdout.write(JSON.stringify({ stats, errors, listeners }));
});
