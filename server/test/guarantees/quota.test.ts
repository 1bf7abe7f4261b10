import assert from 'node:assert/strict';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { call, postTrace, startServer, toolOn, totalOf } from '../cli/helpers.ts';
import { spawnServer } from '../support/cli.ts';
import { needProgram } from '../support/debian.ts';
import { temporaryFolder } from '../support/service.ts';
import { skipUnlessCi } from '../support/skip.ts';
import { assertVerifyClean } from '../process/helpers.ts';
import { makeTeams } from './crash-lab.ts';

/** Some of the writer's writes into the -wal file fail with this error, and so does the probe that looks for the cause. */
function failWrites(path: string, error: string): readonly string[] {
  const options = '-D -f -qq -o /dev/null -e trace=pwrite64,write'.split(' ');
  const paths = ['-P', `${path}-wal`, '-P', `${path}.probe`];
  // SQLite writes by pwrite64, Node by write; strace counts them apart.
  const log = ['-e', `inject=pwrite64:error=${error}:when=60..75`];
  const probe = ['-e', `inject=write:error=${error}`];
  return ['strace', ...options, ...paths, ...log, ...probe];
}

test('a full quota is answered like a full disk, and writes succeed again when there is room', async (t) => {
  const missing = needProgram('strace');
  if (missing !== null) return skipUnlessCi(t, missing);
  const folder = temporaryFolder();
  t.after(folder.remove);
  const path = join(realpathSync(folder.path), 'quota.db');
  const tool = toolOn(path);
  const [team] = await makeTeams(path, 1);
  const key = team?.key ?? '';
  const server = await spawnServer(
    ['--database', tool.database],
    {},
    { wrapper: failWrites(path, 'EDQUOT') },
  );
  t.after(async () => void (await server.end('SIGKILL')));

  const statuses: number[] = [];
  while (statuses.length < 200 && !(statuses.includes(507) && statuses.at(-1) === 201)) {
    const { status, body } = await postTrace(server.url, key, { input: `${statuses.length}` });
    statuses.push(status);
    if (status === 201) continue;
    assert.deepEqual([status, body.code], [507, 'disk_full']);
    assert.equal((await call(`${server.url}/readyz`, null)).status, 200);
  }
  const stored = statuses.filter((status) => status === 201).length;
  assert.ok(statuses.includes(507), 'the fault was never injected: the test proves nothing');
  assert.equal(statuses.at(-1), 201, 'writes resume by themselves');
  assert.equal(await totalOf(server.url, key), stored);
  await assertVerifyClean(tool);
  await server.end('SIGKILL');
  const again = await startServer(t, tool);
  assert.equal(await totalOf(again.url, key), stored);
});

test('a write error that is not about space still stops the writer', async (t) => {
  const missing = needProgram('strace');
  if (missing !== null) return skipUnlessCi(t, missing);
  const folder = temporaryFolder();
  t.after(folder.remove);
  const path = join(realpathSync(folder.path), 'eio.db');
  const [team] = await makeTeams(path, 1);
  const key = team?.key ?? '';
  const server = await spawnServer(
    ['--database', `sqlite:${path}`],
    {},
    { wrapper: failWrites(path, 'EIO') },
  );
  t.after(async () => void (await server.end('SIGKILL')));
  let status = 201;
  for (let i = 0; i < 200 && status === 201; i++)
    status = (await postTrace(server.url, key)).status;
  assert.equal(status, 503);
  assert.equal((await postTrace(server.url, key)).status, 503);
  assert.equal((await call(`${server.url}/readyz`, null)).status, 503);
});
