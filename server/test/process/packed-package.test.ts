import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runToEnd, strangerEnvironment } from '../../../client/test/support/stranger.ts';
import { findBrowser } from '../../../dashboard/test/support/browser.ts';
import { installInEmptyFolder, pack } from '../../scripts/pack.ts';
import { eventually } from '../support/eventually.ts';

const server = fileURLToPath(new URL('../../', import.meta.url));

describe('the packed service, installed in an empty folder', { timeout: 170_000 }, () => {
  /** A stranger installs the tarball here, with the Node.js of the host first on the search path. */
  let folder: string;
  let files: readonly string[];
  let service: ChildProcessWithoutNullStreams | null = null;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tracetally-packed-'));
    const packed = await pack(server, folder);
    files = packed.files;
    await installInEmptyFolder(folder, [packed.path]);
  });
  after(() => {
    service?.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  });

  test('it contains the built service with its types, the dashboard, migrations and the license, and nothing else', () => {
    const wanted = ['LICENSE', 'README.md', 'bin', 'dist', 'migrations', 'package.json', 'page'];
    assert.deepEqual(new Set(files.map((name) => name.split('/')[0])), new Set(wanted));
    assert.ok(files.includes('dist/main.d.ts'));
    assert.deepEqual(
      files.filter((name) => /(?<!\.d)\.ts$|test|fixture/.test(name)),
      [],
    );
  });

  test('what fills the compile cache of an image finds every module', async () => {
    const node = join(folder, 'node_modules/.bin/node');
    const warmUp = join(folder, 'node_modules/tracetally/bin/warm-up.js');
    await runToEnd(node, [warmUp], { cwd: folder });
  });

  test('it starts, stores a trace, shows it in a browser, serves metrics, is verified and stops', async (t) => {
    const launcher = join(folder, 'node_modules/.bin/tracetally');
    service = spawn(launcher, ['--port', '0', '--metrics-listen', '127.0.0.1:0'], {
      cwd: folder,
      env: { ...strangerEnvironment, NODE_COMPILE_CACHE: join(folder, 'compiled') },
    });
    let stdout = '';
    let stderr = '';
    service.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
    service.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
    const ended = new Promise((resolve) => service?.once('close', resolve));
    const [, url = ''] = await eventually(
      'the startup message',
      120_000,
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
    const [metricsUrl = ''] = /http:\S+\/metrics/.exec(stderr) ?? [];
    const metrics = await (await fetch(metricsUrl)).text();
    assert.match(metrics, /^tracetally_traces_stored_total 1$/m);
    const [link = ''] = /\S+#code=\S+/.exec(stdout) ?? [];
    await showDashboard(t, link);
    // What it prints can be pasted.
    assert.match(stdout, /npx tracetally/);

    const ownCache = join(folder, 'node_modules/tracetally/.cache');
    assert.ok(!existsSync(ownCache), 'the folder that the operator chose is used');
    await runToEnd(launcher, ['verify'], { cwd: folder });
    assert.ok(existsSync(ownCache), 'by default, the package has its own');
    service.kill('SIGTERM');
    assert.equal(await ended, 0, stderr);
    assert.notDeepEqual(readdirSync(join(folder, 'compiled')), []);
  });
});

/** Signs in with the printed link, and sees the trace that was posted. */
async function showDashboard(t: TestContext, link: string): Promise<void> {
  const found = await findBrowser();
  if ('missing' in found) return t.diagnostic(found.missing);
  const { browser } = found;
  try {
    const page = await browser.newPage();
    await page.goto(link);
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    await page.getByText('$0.50').first().waitFor();
  } finally {
    await browser.close();
  }
}
