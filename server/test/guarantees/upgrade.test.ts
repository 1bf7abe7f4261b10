import assert from 'node:assert/strict';
import { copyFileSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { extraNames } from '../../src/core/trace-fields.ts';
import { readMigrations } from '../../src/store/sqlite/migrate.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';

const fixtures = new URL('fixtures/', import.meta.url);
const versions = readMigrations().map(({ version }) => version);

test('there is a file of every schema version', () => {
  assert.deepEqual(
    globSync('schema-*.db', { cwd: fixtures }).sort(),
    versions.map((version) => `schema-${version}.db`).sort(),
  );
});

for (const version of versions) {
  test(`a file of schema ${version} opens, keeps every trace and takes new ones`, async () => {
    const expected = JSON.parse(readFileSync(new URL(`schema-${version}.json`, fixtures), 'utf8'));
    const folder = temporaryFolder();
    copyFileSync(new URL(`schema-${version}.db`, fixtures), join(folder.path, 'tracetally.db'));
    const service = await startTestService({ folder: folder.path });
    try {
      assert.equal(service.firstKey, null);
      const report = await verifyTeam(service.beside, expected.team);
      assert.deepEqual(report, { traces: expected.total, differences: [] });
      assert.deepEqual(await service.beside.checkStorage(), []);
      const overview = await service.call(expected.key, 'GET', '/analytics/overview');
      assert.deepEqual(overview.json, expected.overview);
      const newest = await service.beside.trace(expected.team, expected.newest.id);
      // Fields that came later are not set.
      const later = Object.fromEntries([...extraNames].map((name) => [name, null]));
      assert.deepEqual(newest, { ...later, ...expected.newest });
      assert.equal(
        (await service.call(expected.key, 'POST', '/traces', { model: 'm' })).status,
        201,
      );
      const page = await service.call(expected.key, 'GET', '/traces?limit=2');
      assert.equal(page.json.total, expected.total + 1);
      assert.equal(page.json.traces[1].id, expected.newest.id);
      // What a later schema brought works on an older file, too.
      const once = { 'idempotency-key': 'upgraded' };
      const batch = { traces: [{ model: 'a' }, { model: 'b' }] };
      const first = await service.call(expected.key, 'POST', '/traces/batch', batch, once);
      const again = await service.call(expected.key, 'POST', '/traces/batch', batch, once);
      assert.deepEqual([first.status, again.text], [201, first.text]);
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      const session = await service.call(null, 'POST', '/session', { key: expected.key });
      assert.deepEqual([session.status, session.json.team.name], [201, 'fixture']);
      assert.deepEqual(await verifyTeam(service.beside, expected.team), {
        traces: expected.total + 3,
        differences: [],
      });
    } finally {
      await service.stop();
      folder.remove();
    }
  });
}
