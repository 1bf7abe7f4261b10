import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { manualClock, startTestService, us } from '../support/service.ts';
import type { KeyHolder, TestService } from '../support/service.ts';

const document = readFileSync(new URL('../../../docs/api.md', import.meta.url), 'utf8');
/** Each example with the sentence before it. */
const examples = [...document.matchAll(/\n([^\n]+)\n\n```sh\n(.*?)```/gs)].map(
  ([, about = '', commands = '']) => ({ about, commands }),
);
const run = promisify(execFile);
let service: TestService;
let team: KeyHolder;

before(async () => {
  // The examples are about these days.
  service = await startTestService({ clock: manualClock(us('2026-11-15T12:00:00Z')) });
  team = await service.keyFor();
  const common = { user_identifier: 'u-17', session_id: 's-42', feature_name: 'support chat' };
  const traces = ['2026-09-15', '2026-10-15', '2026-11-14'].map((day) => ({
    ...common,
    model: 'gpt-4o',
    environment: 'production',
    started_at: `${day}T10:00:00Z`,
    error_message: 'no refund',
    latency_ms: 6_000,
    cost_usd: 0.02,
    metadata: { plan: 'gold' },
  }));
  const { status } = await service.call(team.key, 'POST', '/traces/batch', { traces });
  assert.equal(status, 201);
});
after(() => service.stop());

interface Reply {
  code?: string;
  traces?: unknown[];
  rows?: unknown[];
  total_calls?: number;
}

/** Whether a reply has something in it. */
function isAnswer(reply: Reply | unknown[]): boolean {
  if (Array.isArray(reply)) return reply.length > 0;
  const { traces, rows, total_calls: calls = 0 } = reply;
  return calls > 0 || (traces ?? rows ?? []).length > 0;
}

for (const { about, commands } of examples) {
  test(`docs/api.md: ${about.slice(0, 80)}`, async () => {
    const env = { ...process.env, URL: service.url, KEY: team.key };
    // One reply per line.
    const script = commands.replaceAll('curl ', String.raw`curl -w '\n' `);
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', script], { env });
    const replies = stdout.trimEnd().split('\n');
    assert.equal(replies.length, commands.split('curl ').length - 1);
    for (const text of replies) {
      const reply = JSON.parse(text) as Reply;
      assert.equal(reply.code, undefined, text);
      assert.ok(isAnswer(reply), text);
    }
  });
}

test('there is an example for every endpoint that answers questions', () => {
  assert.ok(examples.length >= 12);
  for (const path of [
    ...['overview', 'by-model', 'by-user', 'daily', 'query'].map((name) => `/analytics/${name}`),
    '/traces',
  ]) {
    assert.ok(
      examples.some(({ commands }) => commands.includes(`$URL${path}"`)),
      path,
    );
  }
});
