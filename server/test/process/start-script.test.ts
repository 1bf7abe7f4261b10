import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertNoStack } from '../cli/helpers.ts';
import { temporaryFolder } from '../support/service.ts';
import { plainEnvironment } from './helpers.ts';

const checkout = fileURLToPath(new URL('../../../', import.meta.url));

/** A checkout after `npm ci --omit=dev`, as far as the dashboard sees it: everything is installed but Vite. */
function checkoutWithoutVite(t: TestContext): string {
  const { path, remove } = temporaryFolder();
  t.after(remove);
  for (const name of ['package.json', 'client', 'dashboard', 'server']) {
    cpSync(join(checkout, name), join(path, name), {
      recursive: true,
      filter: (source) => !/\/(test|dist|node_modules)$/.test(source),
    });
  }
  mkdirSync(join(path, 'node_modules'));
  for (const name of readdirSync(join(checkout, 'node_modules'))) {
    if (/^(vite|\.cache|@tracetally)$/.test(name)) continue;
    symlinkSync(join(checkout, 'node_modules', name), join(path, 'node_modules', name));
  }
  return path;
}

function addOldBuild(folder: string): void {
  const dist = join(folder, 'dashboard', 'dist');
  mkdirSync(dist);
  writeFileSync(join(dist, 'index.html'), '<title>built before</title>');
  writeFileSync(join(dist, 'stamp'), 'of older files');
}

interface Started {
  url: string;
  stdout: string;
  stderr: string;
}

/** `npm start` on a free port, until it listens. It ends with the test. */
async function npmStart(t: TestContext, folder: string): Promise<Started> {
  const flags = ['--port', '0', '--log-level', 'silent'];
  // A separate process group, so that a signal reaches what npm has started.
  const child = spawn('npm', ['start', '--', ...flags], {
    cwd: folder,
    env: plainEnvironment(),
    detached: true,
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  t.after(async () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
    await ended;
  });
  let stdout = '';
  let stderr = '';
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (data: Buffer) => {
      stdout += data.toString();
      const found = /listening on (\S+)[^]*\n$/.exec(stdout)?.[1];
      if (found !== undefined) resolve(found);
    });
    void ended.then((code) => reject(new Error(`npm start ended with ${code}: ${stderr}`)));
  });
  // npm's own warnings, such as those about the configuration of this machine, are not ours.
  return { url, stdout, stderr: stderr.replaceAll(/^npm warn .*\n/gm, '') };
}

const timeout = 60_000;

test(
  'without its build tools npm start says what to do and serves the API',
  { timeout },
  async (t) => {
    const { url, stdout, stderr } = await npmStart(t, checkoutWithoutVite(t));
    assertNoStack({ code: null, stdout, stderr });
    assert.equal(
      stderr,
      'dashboard: not built, because its build tools are not installed. The service starts without it. ' +
        'To build it, run "npm ci" without --omit=dev.\n',
    );
    assert.match(stdout, /The dashboard has not been built, so only the API is served\./);
    assert.doesNotMatch(stdout, /#code=/);
    assert.equal((await fetch(`${url}/readyz`)).status, 200);
    const page = await fetch(`${url}/`);
    assert.equal(page.status, 404);
    assert.match(await page.text(), /has not been built.*npm ci/);
  },
);

test(
  'a dashboard that was built before is served without the build tools',
  { timeout },
  async (t) => {
    const folder = checkoutWithoutVite(t);
    addOldBuild(folder);
    const { url, stdout, stderr } = await npmStart(t, folder);
    assertNoStack({ code: null, stdout, stderr });
    assert.match(
      stderr,
      /^dashboard: not built.* starts with the dashboard that was built before\./,
    );
    assert.match(stdout, /#code=/);
    assert.match(await (await fetch(`${url}/`)).text(), /built before/);
  },
);

test('a failed build prints one sentence and keeps the last build', { timeout }, async (t) => {
  const folder = checkoutWithoutVite(t);
  const vite = join(folder, 'node_modules', 'vite');
  symlinkSync(join(checkout, 'node_modules', 'vite'), vite);
  rmSync(join(folder, 'dashboard', 'src', 'main.tsx'));
  addOldBuild(folder);
  const { url, stdout, stderr } = await npmStart(t, folder);
  assertNoStack({ code: null, stdout, stderr });
  assert.match(stderr, /^dashboard: the build failed\. .* run: npm run build -w dashboard$/m);
  assert.match(await (await fetch(`${url}/`)).text(), /built before/);
});
