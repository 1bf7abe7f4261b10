import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  mkdirSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { TraceTally } from '../../src/index.ts';
import { startServer } from '../support/server.ts';

const client = fileURLToPath(new URL('../../', import.meta.url));

before(() => {
  assert.ok(existsSync(join(client, 'dist/index.js')), 'build first: npm run build, in client/');
});

/** A Node.js on the PATH that is not the one that came with the install: the one that users of the client may have. */
function nodeOfHost(): string {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const found = folders
    .filter((folder) => !folder.includes('node_modules'))
    .map((folder) => join(folder, 'node'))
    .find((path) => isExecutable(path));
  return found ?? process.execPath;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

test('the built client works on the Node.js of the host', async (t) => {
  const server = await startServer();
  try {
    const key = await server.freshKey();
    const smoke = fileURLToPath(new URL('smoke.mjs', import.meta.url));
    const { status, stdout, stderr } = spawnSync(nodeOfHost(), [smoke, server.url, key], {
      encoding: 'utf8',
      timeout: 30_000,
    });
    t.diagnostic(stdout.trim());
    assert.equal(status, 0, stderr);
    assert.equal(stderr, '');
    const reader = new TraceTally({ apiKey: key, baseUrl: server.url });
    assert.equal((await reader.traces.list()).total, 253);
  } finally {
    await server.stop();
  }
});

test('the types of the built client are good for strict users, and need none of Node.js', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tracetally-types-'));
  try {
    mkdirSync(join(folder, 'node_modules/@tracetally'), { recursive: true });
    symlinkSync(client, join(folder, 'node_modules/@tracetally/client'), 'dir');
    writeFileSync(join(folder, 'user.ts'), program);
    for (const resolution of ['bundler', 'nodenext']) {
      const module = resolution === 'bundler' ? 'esnext' : 'nodenext';
      const options = { module, moduleResolution: resolution, ...strict };
      const config = { compilerOptions: options, files: ['user.ts'] };
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
      writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
      const compiler = fileURLToPath(
        new URL('../../../node_modules/typescript/bin/tsc', import.meta.url),
      );
      const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', folder], {
        encoding: 'utf8',
      });
      assert.equal(status, 0, `${resolution}: ${stdout}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const strict = {
  target: 'es2022',
  lib: ['es2023', 'dom'],
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  noEmit: true,
};

const program = `
import { TraceTally, TraceTallyError } from '@tracetally/client';
import type { Overview, Stats, Trace, TraceInput, TraceTallyOptions } from '@tracetally/client';

const options: TraceTallyOptions = { apiKey: 'k', onError: (error) => void error.message };
const client = new TraceTally(options);
const input: TraceInput = { model: 'm', input: undefined, status: 'success' };
const stored: Promise<Trace> = client.record(input);
const overview: Promise<Overview> = client.analytics.overview();
const stats: Stats = client.stats();
for await (const { id } of client.traces.all({ omit: ['input'] })) id.toUpperCase();
await stored.catch((error: unknown) => error instanceof TraceTallyError && error.code);
await overview;
stats.sent.toFixed();
// @ts-expect-error: a trace has a model
client.enqueue({ input: 'i' });
// @ts-expect-error: no such status
client.enqueue({ model: 'm', status: 'fine' });
export {};
`;
