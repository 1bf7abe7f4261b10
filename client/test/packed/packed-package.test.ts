import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { nodeOfHost } from '../support/node-of-host.ts';
import { startServer } from '../support/server.ts';
import type { LiveServer } from '../support/server.ts';
import { openPackedLab, programs, runAgainst } from './packed-client.ts';
import type { PackedLab } from './packed-client.ts';

describe('the packed client, installed in an empty folder', () => {
  let lab: PackedLab;
  let server: LiveServer;
  before(async () => {
    [lab, server] = await Promise.all([openPackedLab(), startServer()]);
    await lab.install(`./${lab.tarball}`);
  });
  after(async () => {
    lab.stop();
    await server.stop();
  });

  test('it contains the built client with its types, and nothing else', async () => {
    const listed = await lab.run('tar', ['-tzf', lab.tarball]);
    const files = listed.trim().split('\n');
    const top = new Set(files.map((name) => name.split('/')[1]));
    assert.deepEqual(top, new Set(['LICENSE', 'README.md', 'dist', 'package.json']));
    const odd = files.filter((name) => /test|(?<!\.d)\.ts$|tsconfig/.test(name));
    assert.deepEqual(odd, []);
    assert.ok(files.includes('package/dist/index.d.ts'));
    assert.ok(files.includes('package/dist/cjs/index.d.ts'));
  });

  test('it records from an ES module with the Node.js of the host', async () => {
    lab.write('program.mjs', programs.esm);
    await runAgainst(lab, server, [nodeOfHost(), 'program.mjs']);
  });

  test('it records from CommonJS with the Node.js of the host', async () => {
    lab.write('program.cjs', programs.commonjs);
    await runAgainst(lab, server, [nodeOfHost(), 'program.cjs']);
  });
});
