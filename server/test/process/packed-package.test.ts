import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { nodeOfHost } from '../../../client/test/support/node-of-host.ts';
import { eventually } from '../support/eventually.ts';

const server = fileURLToPath(new URL('../../', import.meta.url));

/** An empty folder in which a stranger installs the tarball, with the Node.js of the host first on the search path. */
let folder: string;
const hostNode = nodeOfHost();
const environment = {
  HOME: tmpdir(),
  PATH: `${join(hostNode, '..')}:/usr/local/bin:/usr/bin:/bin`,
  ...(process.env['npm_config_cache'] && { npm_config_cache: process.env['npm_config_cache'] }),
};

async function run(command: string, args: readonly string[], cwd = folder, env = environment) {
  const child = spawn(command, args, { cwd, env, timeout: 150_000 });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { status: await ended, stdout, stderr };
}

describe('the packed service, installed in an empty folder', { timeout: 170_000 }, () => {
  let files: string[];
  let service: ChildProcessWithoutNullStreams | null = null;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tracetally-packed-'));
    // The lifecycle script builds with the Node.js of the checkout.
    const { PATH = '', HOME = '' } = process.env;
    const own = { ...environment, HOME, PATH: `${join(process.execPath, '..')}:${PATH}` };
    const packed = await run('npm', ['pack', '--json', '--pack-destination', folder], server, own);
    assert.equal(packed.status, 0, packed.stderr);
    const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
    const listed = await run('tar', ['-tzf', tarball]);
    files = listed.stdout.trim().split('\n');
    writeFileSync(join(folder, 'package.json'), '{ "private": true }');
    const quietly = ['--prefer-offline', '--no-audit', '--no-fund', '--no-update-notifier'];
    const env = { ...environment, HOME };
    const installed = await run('npm', ['install', ...quietly, `./${tarball}`], folder, env);
    assert.equal(installed.status, 0, installed.stderr);
  });
  after(() => {
    service?.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  });

  test('it contains the built service, the dashboard, migrations and the license, and nothing else', () => {
    const wanted = ['LICENSE', 'README.md', 'bin', 'dist', 'migrations', 'package.json', 'page'];
    assert.deepEqual(new Set(files.map((name) => name.split('/')[1])), new Set(wanted));
    assert.deepEqual(
      files.filter((name) => /\.ts$|test|fixture/.test(name)),
      [],
    );
  });

  test('it starts, stores a trace, shows the dashboard, is verified and stops', async () => {
    const launcher = join(folder, 'node_modules/.bin/tracetally');
    service = spawn(launcher, ['--port', '0'], { cwd: folder, env: environment });
    let stdout = '';
    let stderr = '';
    service.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
    service.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
    const ended = new Promise((resolve) => service?.once('close', resolve));
    const [, url = ''] = await eventually(
      'the startup message',
      60_000,
      () => /is listening on (\S+)/.exec(stdout) ?? (service?.exitCode !== null && ['', '']),
    );
    assert.notEqual(url, '', stderr);
    const [key = ''] = /tt_\w+/.exec(stdout) ?? [];
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: 'm', input: 'x'.repeat(2_000), cost_usd: 0.5 });
    const posted = await fetch(`${url}/traces`, { method: 'POST', headers, body });
    assert.equal(posted.status, 201, await posted.text());
    const models = await (await fetch(`${url}/analytics/by-model`, { headers })).json();
    assert.equal((models as { model: string }[])[0]?.model, 'm');
    const page = await (await fetch(`${url}/`)).text();
    assert.match(page, /<script type="module"/);
    // What it prints can be pasted.
    assert.match(stdout, /npx tracetally/);

    const verified = await run(launcher, ['verify', '--json']);
    assert.equal(verified.status, 0, verified.stderr);
    service.kill('SIGTERM');
    assert.equal(await ended, 0, stderr);
  });
});
