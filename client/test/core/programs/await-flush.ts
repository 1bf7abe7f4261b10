/** Waits for a flush with nothing else to do while the server is away; the wait itself must keep the process alive. */
import { TraceTally } from '../../../src/index.ts';

const [baseUrl, apiKey] = process.argv.slice(2);
const client = new TraceTally({
  baseUrl,
  apiKey,
  onError() {},
  maxRetryAgeMs: 1_000,
  retryDelayMs: 300,
});
client.enqueue({ model: 'm' });
await client.flush();
process.stdout.write(JSON.stringify(client.stats()));
