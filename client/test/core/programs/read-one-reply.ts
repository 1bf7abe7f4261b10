/** One call: URL, what to call, and settings as JSON; prints how it ended and how much memory that took. */
import { TraceTally, TraceTallyError } from '../../../src/index.ts';
import type { TraceTallyOptions } from '../../../src/index.ts';

const [baseUrl, name, settings = '{}'] = process.argv.slice(2);
const errors: unknown[] = [];
const client = new TraceTally({
  baseUrl,
  apiKey: 'k',
  maxRetries: 0,
  maxRetryAgeMs: 0,
  onError: (error) => void errors.push(error),
  ...(JSON.parse(settings) as TraceTallyOptions),
});

async function call(): Promise<unknown> {
  if (name === 'overview') return client.analytics.overview();
  if (name === 'record') return client.record({ model: 'm' });
  client.enqueue({ model: 'm' });
  await client.flush();
  throw errors[0];
}

const startedMs = performance.now();
const error: unknown = await call().catch((thrown: unknown) => thrown);
const { code, status } = error instanceof TraceTallyError ? error : { code: 'none', status: null };
const tookMs = performance.now() - startedMs;
const memoryMib = process.resourceUsage().maxRSS / 1024;
process.stdout.write(JSON.stringify({ code, status, tookMs, memoryMib }));
