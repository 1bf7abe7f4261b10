import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { datedChangelog, isVersion, withRelease } from '../../scripts/release-texts.ts';

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

test('a package names its version and where it comes from', () => {
  const manifest = '{ "name": "a", "version": "0.0.1", "description": "d", "files": ["dist"] }';
  const url = 'git+https://git.example/tally.git';
  assert.deepEqual(JSON.parse(withRelease(manifest, '1.0.0', url, 'server/package.json')), {
    name: 'a',
    version: '1.0.0',
    description: 'd',
    repository: { type: 'git', url, directory: 'server' },
    files: ['dist'],
  });
  assert.equal(
    JSON.parse(withRelease(manifest, '1.0.0', null, 'package.json')).repository,
    undefined,
  );
});
