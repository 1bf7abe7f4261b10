import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { startTestService } from '../../server/test/support/service.ts';
import type { TestService } from '../../server/test/support/service.ts';
import { send } from '../../server/test/http/helpers.ts';

let plain: TestService;
let mounted: TestService;

before(async () => {
  plain = await startTestService();
  mounted = await startTestService({ flags: { 'base-path': '/v1' } });
});
after(async () => {
  await plain.stop();
  await mounted.stop();
});

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Every file of the built page that the server gives out, as its path below the base. */
function files(): string[] {
  const names = readdirSync(new URL('../dist/assets/', import.meta.url));
  return names.filter((name) => !/\.(gz|br)$/.test(name)).map((name) => `/assets/${name}`);
}

test('the page runs only its own files, connects only to its server, cannot be framed, and sends no referrer', async () => {
  for (const service of [plain, mounted]) {
    for (const path of ['/', ...files()]) {
      const { status, headers } = await service.call(null, 'GET', path);
      assert.equal(status, 200, path);
      assert.equal(headers.get('content-security-policy'), policy, path);
      assert.equal(headers.get('referrer-policy'), 'no-referrer', path);
      assert.equal(headers.get('x-content-type-options'), 'nosniff', path);
      assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin', path);
      assert.equal(headers.get('x-frame-options'), 'DENY', path);
      assert.equal(headers.get('set-cookie'), null, path);
    }
  }
});

test('the document has no inline script or style, so the policy needs no exception', async () => {
  const { text } = await plain.call(null, 'GET', '/');
  assert.doesNotMatch(text, /<style|\sstyle=|\son[a-z]+=|javascript:/i);
  const scripts = text.match(/<script\b[^>]*>[^<]*/g) ?? [];
  assert.ok(scripts.length > 0);
  for (const script of scripts)
    assert.match(script, /^<script [^>]*src="\.\/assets\/[^"]+"[^>]*>$/);
});

test('files have a hash in their name and are cached for a year; the document is revalidated each time', async () => {
  assert.ok(files().length >= 3);
  for (const path of files()) {
    assert.match(path, /-[\w-]{8,}\.(js|css|svg)$/);
    const { headers } = await plain.call(null, 'GET', path);
    assert.equal(headers.get('cache-control'), 'public, max-age=31536000, immutable', path);
  }
  const { headers } = await plain.call(null, 'GET', '/');
  assert.equal(headers.get('cache-control'), 'no-cache');
});

test('every file is sent as br or gzip if the browser accepts it, with the same content', async () => {
  for (const path of ['/', ...files()]) {
    const wanted = Buffer.from(await (await fetch(`${plain.url}${path}`)).arrayBuffer());
    for (const [accept, encoding] of [
      ['gzip, deflate, br, zstd', 'br'],
      ['gzip', 'gzip'],
      ['gzip;q=1.0, br;q=0', 'gzip'],
      ['identity', null],
    ] as const) {
      const { body, headers } = await raw(path, accept);
      assert.equal(headers['content-encoding'] ?? null, encoding, `${path} for ${accept}`);
      assert.equal(headers['vary'], 'accept-encoding');
      const unpack = { br: brotliDecompressSync, gzip: gunzipSync };
      const got = encoding === null ? body : unpack[encoding](body);
      assert.ok(got.equals(wanted), `${path} for ${accept}`);
    }
  }
});

/** Without the unpacking that fetch does. */
async function raw(path: string, accept: string) {
  const { request } = await import('node:http');
  return new Promise<{ body: Buffer; headers: NodeJS.Dict<string | string[]> }>(
    (resolve, reject) => {
      const outgoing = request(`${plain.url}${path}`, { headers: { 'accept-encoding': accept } });
      outgoing.on('error', reject);
      outgoing.on('response', (incoming) => {
        const pieces: Buffer[] = [];
        incoming.on('data', (piece: Buffer) => pieces.push(piece));
        incoming.on('end', () =>
          resolve({ body: Buffer.concat(pieces), headers: incoming.headers }),
        );
      });
      outgoing.end();
    },
  );
}

test('a file that the browser has is not sent again', async () => {
  for (const path of ['/', ...files()]) {
    const first = await plain.call(null, 'GET', path);
    const etag = first.headers.get('etag') ?? '';
    assert.match(etag, /^"[^"]+"$/);
    const again = await plain.call(null, 'GET', path, undefined, { 'if-none-match': etag });
    assert.deepEqual([again.status, again.text], [304, ''], path);
    assert.equal(again.headers.get('etag'), etag);
    const other = await plain.call(null, 'GET', path, undefined, { 'if-none-match': '"other"' });
    assert.equal(other.status, 200);
  }
});

test('HEAD returns the same headers without the body', async () => {
  for (const path of ['/', ...files()]) {
    const { status, text, headers } = await plain.call(null, 'HEAD', path);
    assert.deepEqual([status, text], [200, ''], path);
    assert.equal(headers.get('content-security-policy'), policy);
  }
});

test('no file name leads out of the page folder', async () => {
  for (const path of [
    '/assets/../index.html',
    '/assets/..%2Findex.html',
    '/assets/..%2f..%2fpackage.json',
    '/assets/%2e%2e/stamp',
    '/assets/..\\..\\package.json',
    '/assets/%00',
    '/assets/',
    '/assets/nothing.js',
    '/stamp',
    '/assets/constructor',
    '/assets/__proto__',
  ]) {
    const { status } = await send(plain.url, { path });
    assert.ok([400, 404].includes(status), `${path}: ${status}`);
  }
});

test('under a base path the page has a trailing slash, and the address without it redirects', async () => {
  const { origin } = new URL(mounted.url);
  const bare = await fetch(mounted.url, { redirect: 'manual' });
  assert.equal(bare.status, 308);
  assert.equal(bare.headers.get('location'), '/v1/');
  const { status } = await fetch(`${mounted.url}/`);
  assert.equal(status, 200);
  for (const path of ['/', '/assets/x.js'])
    assert.equal((await fetch(`${origin}${path}`)).status, 404, `${path} is not ours`);
});
