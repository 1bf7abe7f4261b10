import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  datedChangelog,
  isVersion,
  publicAddress,
  releasedLock,
  releasedManifest,
} from '../../scripts/release-texts.ts';

test('a release takes a version of three numbers', () => {
  for (const text of ['1.2.3', '0.10.0', '1.0.0-rc.1']) assert.ok(isVersion(text), text);
  for (const text of ['1.2', 'v1.2.3', '1.2.3 ', '']) assert.ok(!isVersion(text), text);
});

test('the entries of a release get its version and date, and the next ones an empty part', () => {
  const before = '# Changelog\n\n## Unreleased\n\n### Added\n- A thing.\n';
  assert.equal(
    datedChangelog(before, '1.2.3', '2026-11-16'),
    '# Changelog\n\n## Unreleased\n\n## 1.2.3 (2026-11-16)\n\n### Added\n- A thing.\n',
  );
  const changelog = readFileSync(new URL('../../../CHANGELOG.md', import.meta.url), 'utf8');
  assert.match(datedChangelog(changelog, '99.0.0', '2026-11-16'), /^## 99\.0\.0 \(2026-11-16\)$/m);
});

test('a release without entries or with a version that exists is refused', () => {
  const released = '# Changelog\n\n## Unreleased\n\n## 1.2.3 (2026-11-16)\n\n- A thing.\n';
  assert.throws(() => datedChangelog(released, '1.2.4', '2026-11-17'), /no entries/);
  assert.throws(() => datedChangelog(released, '1.2.3', '2026-11-17'), /1\.2\.3 already/);
});

const own = new Set(['a', 'a-part']);
const url = 'git+https://git.example/tally.git';

test('a package that is published names its version and the folder of its source', () => {
  const manifest = {
    name: 'a',
    version: '0.0.1',
    description: 'd',
    files: ['dist'],
    publishConfig: { access: 'public' },
  };
  const source = { repository: url, directory: 'server' };
  const released = releasedManifest(JSON.stringify(manifest), '1.0.0', own, source);
  const repository = { type: 'git', url, directory: 'server' };
  assert.deepEqual(JSON.parse(released), { ...manifest, version: '1.0.0', repository });
  for (const [text, from] of [
    [manifest, null],
    [{ ...manifest, publishConfig: undefined }, url],
  ] as const) {
    const plain = releasedManifest(JSON.stringify(text), '1.0.0', own, {
      repository: from,
      directory: 'server',
    });
    assert.equal(JSON.parse(plain).repository, undefined);
  }
});

test('packages that need each other, and the lock file, have the same version', () => {
  const manifest = {
    name: 'page',
    version: '0.0.1',
    dependencies: { a: '0.0.1', b: '0.0.1' },
    devDependencies: { 'a-part': '0.0.1' },
  };
  const released = {
    name: 'page',
    version: '1.0.0',
    dependencies: { a: '1.0.0', b: '0.0.1' },
    devDependencies: { 'a-part': '1.0.0' },
  };
  const source = { repository: url, directory: 'page' };
  const text = releasedManifest(JSON.stringify(manifest), '1.0.0', own, source);
  assert.deepEqual(JSON.parse(text), released);

  const unversioned = { name: 'a-part', devDependencies: { b: '0.0.1' } };
  const others = { 'node_modules/b': { version: '0.0.1' }, part: unversioned };
  const lock = { name: 'all', version: '0.0.1', packages: { page: manifest, ...others } };
  assert.deepEqual(JSON.parse(releasedLock(JSON.stringify(lock), '1.0.0', own)), {
    name: 'all',
    version: '1.0.0',
    packages: { page: released, ...others },
  });
});

test('a release keeps the form of the lock file and of every manifest', () => {
  const read = (file: string): string =>
    readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
  const { version, workspaces } = JSON.parse(read('package.json')) as {
    version: string;
    workspaces: string[];
  };
  const lock = read('package-lock.json');
  assert.equal(releasedLock(lock, version, own), lock);
  for (const folder of ['.', ...workspaces]) {
    const text = read(`${folder}/package.json`);
    const source = { repository: null, directory: folder };
    assert.equal(releasedManifest(text, version, own, source), text);
  }
});

test('the source of a package is a public address without credentials', () => {
  for (const remote of [
    'https://git.example/team/tally.git',
    'https://ci-token:secret@git.example/team/tally.git',
    'git@git.example:team/tally.git',
    'git.example:/team/tally.git',
    'ssh://git@git.example:2222/team/tally.git',
    'git://git.example/team/tally.git',
  ]) {
    assert.equal(publicAddress(remote), 'git+https://git.example/team/tally.git', remote);
  }
  for (const path of ['', '/srv/tally', '../tally', 'file:///srv/tally']) {
    assert.equal(publicAddress(path), null, path);
  }
});
