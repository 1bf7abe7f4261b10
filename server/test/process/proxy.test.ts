import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { generateKey } from '../../src/core/api-key.ts';
import { startServer, toolInFolder } from '../cli/helpers.ts';
import type { NewKeyJson } from '../cli/helpers.ts';
import { eventually } from '../support/eventually.ts';
import { needDashboard } from '../support/dashboard.ts';
import { needProgram } from '../support/debian.ts';
import { temporaryFolder } from '../support/service.ts';
import { skipUnlessCi } from '../support/skip.ts';
import { freePort } from './helpers.ts';

const page = readFileSync(new URL('../../../docs/proxy.md', import.meta.url), 'utf8');

/** The configurations of one kind in docs/proxy.md. */
function snippets(language: string): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))].map(
    ([, text]) => text ?? '',
  );
}

interface Reply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

/** From an address that is not the proxy's, since what comes from a trusted address may name another one. */
function ask(url: string, { method = 'GET', headers = {}, body }: Sent = {}): Promise<Reply> {
  const options = { method, headers, localAddress: '127.0.0.2', agent: false as const };
  return new Promise((resolve, reject) => {
    const outgoing = url.startsWith('https:')
      ? tlsRequest(url, { ...options, rejectUnauthorized: false })
      : plainRequest(url, options);
    outgoing.setTimeout(20_000, () => outgoing.destroy(new Error('no reply in time')));
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      let text = '';
      incoming.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      incoming.on('error', reject);
      incoming.on('end', () =>
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text }),
      );
    });
    outgoing.end(body);
  });
}

/** Runs a proxy in the foreground, on loopback, until the test ends. */
async function runProxy(
  t: TestContext,
  origin: string,
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
) {
  const child = spawn(program, args, { env: { ...process.env, ...env } });
  let output = '';
  child.stderr.on('data', (data: Buffer) => (output += data.toString()));
  const ended = new Promise((resolve) => child.once('close', resolve));
  t.after(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  await eventually(`${program} at ${origin}`, 120_000, async () => {
    assert.equal(child.exitCode, null, output);
    return ask(`${origin}/`).then(
      () => true,
      () => null,
    );
  });
}

function replaced(text: string, changes: readonly (readonly [string | RegExp, string])[]): string {
  return changes.reduce((all, [from, to]) => {
    const changed = all.replaceAll(from instanceof RegExp ? new RegExp(from, 'g') : from, to);
    assert.notEqual(changed, all, `docs/proxy.md has no ${from}`);
    return changed;
  }, text);
}

async function startNginx(t: TestContext, snippet: string, serverUrl: string): Promise<string> {
  const folder = temporaryFolder();
  t.after(() => folder.remove());
  const inFolder = (name: string): string => join(folder.path, name);
  const port = await freePort();
  const subject = ['-subj', '/CN=tally.example', '-days', '2', '-nodes'];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  const files = ['-keyout', inFolder('key.pem'), '-out', inFolder('cert.pem')];
  const made = spawnSync('openssl', ['req', '-x509', ...key, ...subject, ...files]);
  assert.equal(made.status, 0, made.stderr.toString());
  const site = replaced(snippet, [
    ['127.0.0.1:4000', new URL(serverUrl).host],
    ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
    [/ssl_certificate \S+;/, `ssl_certificate ${inFolder('cert.pem')};`],
    [/ssl_certificate_key \S+;/, `ssl_certificate_key ${inFolder('key.pem')};`],
  ]);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${inFolder(name)};`,
  );
  const config = [
    'daemon off;',
    // The workers read and write only below this folder, which belongs to whoever runs the test.
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    `pid ${inFolder('nginx.pid')};`,
    'events {}',
    `http { access_log off; ${temporary.join(' ')}`,
    site,
    '}',
  ].join('\n');
  writeFileSync(inFolder('nginx.conf'), config);
  const origin = `https://127.0.0.1:${port}`;
  const args = ['-c', inFolder('nginx.conf'), '-p', folder.path, '-e', 'stderr'];
  await runProxy(t, origin, 'nginx', args);
  return origin;
}

async function startCaddy(t: TestContext, snippet: string, serverUrl: string): Promise<string> {
  const folder = temporaryFolder();
  t.after(() => folder.remove());
  const origin = `http://127.0.0.1:${await freePort()}`;
  const site = replaced(snippet, [
    ['127.0.0.1:4000', new URL(serverUrl).host],
    ['services.example', origin],
  ]);
  const file = join(folder.path, 'Caddyfile');
  writeFileSync(file, `{\n\tadmin off\n}\n${site}`);
  const home = { HOME: folder.path, XDG_DATA_HOME: folder.path, XDG_CONFIG_HOME: folder.path };
  await runProxy(t, origin, 'caddy', ['run', '--config', file, '--adapter', 'caddyfile'], home);
  return origin;
}

type StartProxy = typeof startNginx;

/** What must work through every proxy. */
async function assertServesThrough(
  t: TestContext,
  start: StartProxy,
  snippet: string,
  path: string,
) {
  needDashboard();
  const tool = toolInFolder(t);
  const basePath = path === '' ? [] : ['--base-path', path];
  const server = await startServer(t, tool, ['--trust-proxy', '127.0.0.1', ...basePath]);
  const { key } = await tool.json<NewKeyJson>('keys', 'create', '--team', 'behind');
  const origin = await start(t, snippet, server.url);
  const base = `${origin}${path}`;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };

  const input = 'x'.repeat(2_000_000);
  const body = JSON.stringify({ model: 'm', input });
  const posted = await ask(`${base}/traces`, { method: 'POST', headers, body });
  assert.equal(posted.status, 201, posted.text.slice(0, 500));
  const location = String(posted.headers['location']);
  assert.ok(location.startsWith(`${path}/traces/`), location);
  const read = await ask(`${origin}${location}`, { headers });
  assert.equal((JSON.parse(read.text) as { input: string }).input, input);

  const traces = Array.from({ length: 9 }, () => ({ model: 'm', input }));
  const batch = JSON.stringify({ traces });
  const many = await ask(`${base}/traces/batch?omit=input`, {
    method: 'POST',
    headers,
    body: batch,
  });
  assert.equal(many.status, 201, many.text.slice(0, 500));
  const list = await ask(`${base}/traces`, { headers });
  assert.equal((JSON.parse(list.text) as { traces: unknown[] }).traces.length, 10);

  if (path !== '') {
    const { status, headers: sent } = await ask(base);
    assert.equal(status, 308);
    assert.equal(new URL(String(sent['location']), origin).href, `${base}/`);
  }
  const dashboard = await ask(`${base}/`);
  assert.equal(dashboard.status, 200);
  const script = /src="\.\/(assets\/[^"]+\.js)"/.exec(dashboard.text)?.[1] ?? 'none';
  assert.equal((await ask(`${base}/${script}`)).status, 200, script);

  const signedIn = await ask(`${base}/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ key }),
  });
  assert.equal(signedIn.status, 201);
  const cookie = String(signedIn.headers['set-cookie']);
  assert.ok(cookie.includes(`Path=${path === '' ? '/' : path}`), cookie);
  assert.equal(/; Secure/.test(cookie), origin.startsWith('https:'), cookie);

  // The limit for failed attempts is by the real address, whatever the caller claims.
  let last: Reply | null = null;
  for (let i = 0; i <= 30; i++) {
    const claim = { authorization: `Bearer ${generateKey()}`, 'x-forwarded-for': `10.0.0.${i}` };
    last = await ask(`${base}/traces`, { headers: claim });
  }
  assert.equal(last?.status, 429);
  const direct = await fetch(`${server.url}/traces`, {
    headers: { authorization: `Bearer ${generateKey()}` },
  });
  assert.equal(direct.status, 401, 'another address has its own limit');
}

const timeout = 120_000;

describe('the configurations of docs/proxy.md', () => {
  for (const [i, path] of ['', '/tally'].entries()) {
    const where = path === '' ? 'at the root' : 'under a base path';
    test(
      `nginx ${where} passes on large traces, the page and the address`,
      { timeout },
      async (t) => {
        const missing = needProgram('nginx', 'nginx-light') ?? needProgram('openssl');
        if (missing !== null) return skipUnlessCi(t, missing);
        const all = snippets('nginx');
        assert.equal(all.length, 2);
        await assertServesThrough(t, startNginx, all[i] ?? '', path);
      },
    );
  }

  test('Caddy under a base path passes on the same', { timeout }, async (t) => {
    const missing = needProgram('caddy');
    if (missing !== null) return skipUnlessCi(t, missing);
    const [snippet = '', ...more] = snippets('caddyfile');
    assert.deepEqual(more, []);
    await assertServesThrough(t, startCaddy, snippet, '/tally');
  });
});
