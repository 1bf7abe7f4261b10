import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { TraceTally } from '../../client/src/index.ts';
import { nodeOfHost } from '../../client/test/support/node-of-host.ts';
import { startServer } from '../../client/test/support/server.ts';
import type { LiveServer } from '../../client/test/support/server.ts';

const client = fileURLToPath(new URL('../../client/', import.meta.url));
/** TypeScript 5 from this folder, and the newer version that builds the client. */
const compilers = [import.meta.filename, join(client, 'package.json')].map((from) =>
  createRequire(from).resolve('typescript/package.json').replace('package.json', 'bin/tsc'),
);

let folder: string;
let tarball: string;
let server: LiveServer;

async function run(command: string, args: readonly string[], cwd = folder) {
  const child = spawn(command, args, { cwd, timeout: 600_000 });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { status: await ended, stdout, stderr };
}

/** A folder that has the packed client in its `node_modules`, and nothing else. The apps are in folders below it. */
before(async () => {
  assert.ok(existsSync(join(client, 'dist/cjs/index.js')), 'build first: npm run build -w client');
  folder = mkdtempSync(join(tmpdir(), 'tracetally-app-'));
  const quietly = ['--ignore-scripts', '--offline', '--no-update-notifier'];
  const packed = await run('npm', ['pack', ...quietly, '--pack-destination', folder], client);
  assert.equal(packed.status, 0, packed.stderr);
  tarball = join(folder, readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '');
  const target = join(folder, 'node_modules/@tracetally/client');
  mkdirSync(target, { recursive: true });
  const unpacked = await run('tar', ['-xzf', tarball, '-C', target, '--strip-components=1']);
  assert.equal(unpacked.status, 0, unpacked.stderr);
  server = await startServer();
});
after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

const program = `
import { TraceTally, TraceTallyError } from '@tracetally/client';
import type { Overview, Stats, Trace, TraceInput, TraceTallyOptions } from '@tracetally/client';

declare const process: { argv: string[]; stdout: { write(text: string): void } };

async function main(): Promise<void> {
  const [baseUrl, apiKey] = process.argv.slice(2);
  const mask = (text: string): string => text.toLowerCase();
  const options: TraceTallyOptions = { baseUrl, apiKey, mask, closeTimeoutMs: 60_000 };
  const tally = new TraceTally(options);
  const input: TraceInput = { model: 'm', input: 'HELLO', status: 'success' };
  const stored: Trace | null = await tally.record(input);
  tally.measure({ model: 'gpt-4o' }, (set) => set({ prompt_tokens: 1000 }));
  await tally.close();
  const stats: Stats = tally.stats();
  const overview: Overview = await tally.analytics.overview();
  const code: string = await tally.traces
    .get('none')
    .then(() => 'found', (error: unknown) => (error instanceof TraceTallyError ? error.code : 'x'));
  for await (const { id } of tally.traces.all({ omit: ['input'] })) id.toUpperCase();
  // @ts-expect-error: a trace has a model
  const withoutModel: TraceInput = { input: 'i' };
  void withoutModel;
  const calls = overview.total_calls;
  process.stdout.write(JSON.stringify({ input: stored?.input, sent: stats.sent, calls, code }));
}

void main();
`;

const strict = {
  target: 'es2022',
  lib: ['es2023', 'dom'],
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
};

interface Project {
  type: 'commonjs' | 'module';
  module: string;
  moduleResolution: string;
}
const projects: Record<string, Project> = {
  'node10 with CommonJS': { type: 'commonjs', module: 'commonjs', moduleResolution: 'node10' },
  'node16 with CommonJS': { type: 'commonjs', module: 'node16', moduleResolution: 'node16' },
  'node16 with ES modules': { type: 'module', module: 'node16', moduleResolution: 'node16' },
  'nodenext with CommonJS': { type: 'commonjs', module: 'nodenext', moduleResolution: 'nodenext' },
  'nodenext with ES modules': { type: 'module', module: 'nodenext', moduleResolution: 'nodenext' },
  bundler: { type: 'module', module: 'esnext', moduleResolution: 'bundler' },
};

// Two at a time: most of the time goes into compilers, and there are two cores.
describe(
  'a strict TypeScript project compiles and runs with the Node.js of the host',
  { concurrency: 2 },
  () => {
    for (const [name, { type, module, moduleResolution }] of Object.entries(projects)) {
      test(`with moduleResolution ${name}`, async () => {
        const app = join(folder, name.replaceAll(' ', '-'));
        mkdirSync(app);
        writeFileSync(join(app, 'app.ts'), program);
        writeFileSync(join(app, 'package.json'), JSON.stringify({ type }));
        const compilerOptions = { ...strict, module, moduleResolution };
        const config = { compilerOptions, files: ['app.ts'] };
        writeFileSync(join(app, 'tsconfig.json'), JSON.stringify(config));
        // Newer versions of TypeScript have no node10.
        for (const tsc of moduleResolution === 'node10' ? compilers.slice(0, 1) : compilers) {
          const compiled = await run(process.execPath, [tsc, '-p', app]);
          assert.equal(compiled.status, 0, compiled.stdout);
        }

        const key = await server.freshKey();
        const { status, stdout, stderr } = await run(
          nodeOfHost(),
          ['app.js', server.url, key],
          app,
        );
        assert.equal(status, 0, stderr);
        const expected = { input: 'hello', sent: 1, calls: 2, code: 'trace_not_found' };
        assert.deepEqual(JSON.parse(stdout), expected);
        assert.equal(stderr, '');
        const reader = new TraceTally({ baseUrl: server.url, apiKey: key });
        const { traces } = await reader.traces.list();
        assert.deepEqual(
          traces.map(({ prompt_tokens, cost_usd }) => [prompt_tokens, cost_usd]),
          [
            [1000, 0.0025],
            [null, null],
          ],
        );
      });
    }
  },
);

test('require works without the support of Node.js for ES modules in require', async () => {
  const code = `const { TraceTally } = require('@tracetally/client'); console.log(typeof TraceTally);`;
  const { stdout, stderr } = await run(nodeOfHost(), [
    '--no-experimental-require-module',
    '-e',
    code,
  ]);
  assert.deepEqual([stdout, stderr], ['function\n', '']);
});

test('the packed client is smaller than 100 kB', () => {
  const { size } = statSync(tarball);
  assert.ok(size < 100_000, `${size} bytes`);
});
