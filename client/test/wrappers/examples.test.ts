import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { TraceTally } from '../../src/client.ts';
import { startServer } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';

const run = promisify(execFile);
const folder = fileURLToPath(new URL('../../../examples/', import.meta.url));
const slowTimers = new URL('../support/slow-timers.ts', import.meta.url).href;

let server: LiveServer;

before(async () => {
  server = await startServer();
});
after(() => server.stop());

/** What each example prints, and how many traces it leaves. */
const examples: Readonly<Record<string, { prints: RegExp; traces: number }>> = {
  'openai.ts': { prints: /^Hello there\.\nHello there\.\n$/, traces: 2 },
  'anthropic.ts': { prints: /"Hello there\.".*\nHello there\.\n$/, traces: 2 },
  'vercel-ai.ts': { prints: /^Hello there\.\nHello there\.\n$/, traces: 2 },
  'measure.ts': { prints: /^glad\n$/, traces: 1 },
  'fetch-batch.ts': { prints: /^3 stored, 0 rejected\n$/, traces: 3 },
};

test('every example is tested', () => {
  const programs = readdirSync(folder).filter((name) => name.endsWith('.ts'));
  const tried = [...Object.keys(examples), 'fake-provider.ts'];
  assert.deepEqual(programs.toSorted(), tried.toSorted());
});

for (const [name, { prints, traces: count }] of Object.entries(examples)) {
  test(`examples/${name} runs, and its traces are stored`, async () => {
    const key = await server.freshKey();
    const env = { TRACETALLY_URL: server.url, TRACETALLY_API_KEY: key };
    // An example has the usual options, so at its end it waits only a moment for the server.
    const args = ['--import', slowTimers, `${folder}${name}`];
    const { stdout, stderr } = await run(process.execPath, args, { env, timeout: 150_000 });
    assert.match(stdout, prints);
    assert.equal(stderr, '');
    const tally = new TraceTally({ baseUrl: server.url, apiKey: key });
    const { traces } = await tally.traces.list();
    const feature = `example-${name.replace('.ts', '')}`;
    const expected = Array.from({ length: count }, () => `${feature} success`);
    assert.deepEqual(
      traces.map(({ feature_name, status }) => `${String(feature_name)} ${status}`),
      expected,
    );
  });
}
