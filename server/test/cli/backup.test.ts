import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { draftTrace } from '../../src/core/trace.ts';
import { makeSignInCode } from '../../src/store/sign-in.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { readAcknowledged, setStage, startLoad, withTool } from '../guarantees/crash-lab.ts';
import { hashOfFile, mountTmpfs } from '../process/helpers.ts';
import { callCli, runCli, spawnCli } from '../support/cli.ts';
import { skipUnlessCi } from '../support/skip.ts';
import {
  allTraces,
  assertRefused,
  postTrace,
  startServer,
  toolInFolder,
  toolOn,
  totalOf,
} from './helpers.ts';
import type { Cleaner, NewKeyJson, Tool } from './helpers.ts';

interface BackupJson {
  file: string;
  bytes: number;
  traces: number;
}

/** The ids of each team's traces, in their order. What is wrong with a file fails here. */
async function idsIn(path: string): Promise<string[][]> {
  return withTool(path, async (store) => {
    assert.deepEqual(await store.checkStorage(), []);
    const all: string[][] = [];
    for (const { id: teamId } of await store.teams(0)) {
      assert.deepEqual((await verifyTeam(store, teamId)).differences, []);
      const ids: string[] = [];
      await store.audit(teamId, async ({ traces }) => {
        for await (const chunk of traces) {
          for (const { id, seq } of chunk) {
            ids.push(id);
            assert.equal(seq, ids.length);
          }
        }
      });
      all.push(ids);
    }
    return all;
  });
}

test('each backup of a server under load has every trace acknowledged before it, and is a prefix of the store', async (t) => {
  const stage = await setStage(3);
  t.after(() => stage.tearDown());
  const tool = toolOn(stage.databasePath);
  const load = startLoad(stage.server.url, stage.folder, 3, 0, stage.teams);
  await load.begun();
  const backups: string[][][] = [];
  for (let i = 0; i < 4; i++) {
    const acknowledged = readAcknowledged(stage.folder);
    const path = join(stage.folder, `backup-${i}.db`);
    const made = await runCli(['backup', path, '--json', '--database', tool.database]);
    const { bytes, traces, file } = JSON.parse(made.stdout) as BackupJson;
    assert.deepEqual([file, bytes], [path, statSync(path).size]);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const ids = await idsIn(path);
    assert.equal(ids.flat().length, traces);
    const held = new Set(ids.flat());
    const lost = acknowledged.filter(({ id }) => !held.has(id));
    assert.deepEqual(lost, [], `of ${acknowledged.length}`);
    backups.push(ids);
  }
  const answers = await load.end();
  assert.deepEqual(Object.keys(answers), ['201'], 'the backup disturbed no client');
  const last = await idsIn(stage.databasePath);
  for (const ids of backups) {
    for (const [team, all] of last.entries()) {
      assert.deepEqual(ids[team], all.slice(0, ids[team]?.length));
    }
  }
  const sizes = backups.map((ids) => ids.flat().length);
  t.diagnostic(`backups of ${sizes.join(', ')} of ${last.flat().length} traces`);
  assert.ok(sizes.every((size, i) => size > (sizes[i - 1] ?? 0)));
  const parts = readdirSync(stage.folder).filter((name) => name.includes('.part'));
  assert.deepEqual(parts, []);
});

test('a backup put in place of the database is the store at that moment, as --help says', async (t) => {
  const { stdout: help } = await callCli(['backup', '--help']);
  assert.match(
    help,
    /stop the server, replace the database\s+with the backup, remove .* -wal and -shm, and start/,
  );
  const tool = toolInFolder(t);
  const { key } = await tool.json<NewKeyJson>('keys', 'create', '--team', 'team');
  const server = await startServer(t, tool);
  for (let i = 0; i < 5; i++) await postTrace(server.url, key, { input: `before ${i}` });
  const kept = await allTraces(server.url, key);
  const copy = join(dirname(tool.path), 'copy.db');
  const told = await tool.run('backup', copy);
  assert.equal(told.code, 0, told.stderr);
  assert.match(told.stdout, /^Backed up 5 traces to \/.*\/copy\.db, \d+ bytes, in [\d.]+ s\.\n$/);
  assert.equal(told.stderr, '', 'no progress bar without a terminal');
  await postTrace(server.url, key, { input: 'after' });
  // Killed, so that the files next to the database still have content.
  await server.end('SIGKILL');
  assert.ok(existsSync(`${tool.path}-wal`));
  renameSync(copy, tool.path);
  for (const suffix of ['-wal', '-shm']) rmSync(`${tool.path}${suffix}`);

  const again = await startServer(t, tool);
  assert.deepEqual(await allTraces(again.url, key), kept);
  assert.equal((await postTrace(again.url, key)).status, 201);
  assert.equal(await totalOf(again.url, key), 6);
  assert.equal((await tool.run('verify')).code, 0);
});

test('a backup holds neither the session secret nor any sign-in code or ended session, and the database keeps them', async (t) => {
  const tool = toolInFolder(t);
  const file = join(dirname(tool.path), 'copy.db');
  const nowUs = Date.now() * 1000;
  const ended = { id: 'ended-session-00000000', endsAtUs: nowUs + 1 };
  const { secret, codes } = await withTool(tool.path, async (store) => {
    const made = Array.from({ length: 3 }, () => makeSignInCode('key_id', nowUs).record);
    for (const code of made) await store.addSignInCode(code, nowUs);
    await store.endSession(ended, nowUs);
    return { secret: await store.sessionSecret(), codes: made };
  });
  assert.equal((await tool.run('backup', file)).code, 0);
  const bytes = readFileSync(file);
  assert.ok(!bytes.includes(secret), 'the secret');
  for (const { hash } of codes) assert.ok(!bytes.includes(hash), 'a code');
  assert.ok(!bytes.includes(ended.id), 'an ended session');
  assert.deepEqual(
    readdirSync(dirname(tool.path)).filter((name) => name.startsWith('copy.db')),
    ['copy.db'],
  );
  await withTool(tool.path, async (store) => {
    assert.deepEqual(await store.sessionSecret(), secret);
    for (const { hash } of codes) assert.ok(await store.findSignInCode(hash, nowUs));
    assert.ok(await store.isSessionEnded(ended));
  });
  // A server on the copy makes its own secret, so cookies of one are invalid at the other.
  await withTool(file, async (store) => {
    assert.notDeepEqual(await store.sessionSecret(), secret);
    assert.deepEqual(await store.checkStorage(), []);
  });
});

/** A store with as many traces of a mebibyte each, which cannot be compressed. */
async function largeStore(t: Cleaner, count: number): Promise<Tool> {
  const tool = toolInFolder(t);
  await withTool(tool.path, async (store) => {
    const { team } = await store.ensureTeam('team', 1);
    for (let i = 0; i < count; i++) {
      const input = randomBytes(768 * 1024).toString('base64');
      await store.append([{ teamId: team.id, drafts: [draftTrace({ model: 'm', input })] }]);
    }
  });
  return tool;
}

test('a backup shows the store when the backup began, even under constant commits', async (t) => {
  const tool = await largeStore(t, 24);
  const file = join(dirname(tool.path), 'copy.db');
  const writer = new DatabaseSync(tool.path, { timeout: 5000 });
  // Many thousand commits a second: none of them has to be on the disk.
  writer.exec('pragma synchronous = off');
  const write = writer.prepare('insert or replace into key_uses values (?, ?)');
  const child = spawnCli(['backup', file, '--database', tool.database]);
  const patience = setTimeout(() => child.kill('SIGKILL'), 120_000);
  let isOver = false;
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  void ended.then(() => (isOver = true));
  let commits = 0;
  /** How many there were when the copy was seen to grow. One in small steps would begin anew with each of those after it. */
  let commitsBefore: number | null = null;
  while (!isOver) {
    for (let i = 0; i < 20; i++) write.run('key', ++commits);
    const bytes = statSync(`${file}.part`, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes > 1024 * 1024 || existsSync(file)) commitsBefore ??= commits;
    await nextTurn();
  }
  clearTimeout(patience);
  writer.close();
  assert.equal(await ended, 0, `it has not ended after ${commits} commits`);
  assert.equal((await idsIn(file)).flat().length, 24);
  const copy = new DatabaseSync(file, { readOnly: true });
  const held = Number(copy.prepare('select last_used_at_us as n from key_uses').get()?.['n']);
  copy.close();
  t.diagnostic(`${held} of ${commits} commits, ${commitsBefore} when it had begun`);
  assert.ok(held > 0 && held <= (commitsBefore ?? 0), `${held} of ${commitsBefore}`);
});

test('a backup lists damaged traces, keeps them unchanged, and exits with 1', async (t) => {
  const tool = toolInFolder(t);
  await tool.json('demo', '--count', '200', '--team', 'team');
  const db = new DatabaseSync(tool.path);
  const harm = db.prepare("update trace_payloads set output = x'ff' where key & 0xff in (7, 9)");
  assert.equal(harm.run().changes, 2);
  db.close();
  const copy = join(dirname(tool.path), 'copy.db');
  const told = await tool.run('backup', copy);
  assert.equal(told.code, 1);
  for (const seq of [7, 9]) {
    assert.match(
      told.stdout,
      new RegExp(
        `^team team: trace ${seq} \\([0-9a-f-]{36}\\): damaged input, output(, [a-z]+)*$`,
        'm',
      ),
    );
  }
  assert.match(told.stdout, /^Backed up 200 traces to .*copy\.db/m);
  const verified = await toolOn(copy).run('verify');
  assert.equal(verified.code, 1);
  assert.equal(verified.stdout.match(/damaged input, output(, [a-z]+)*$/gm)?.length, 2);

  const target = toolOn(join(dirname(tool.path), 'target.db'));
  const copied = await callCli(['copy', '--from', tool.database, '--to', target.database]);
  assert.equal(copied.code, 1, 'copy recounts its target, and that names them too');
  assert.equal(copied.stdout.match(/damaged input, output(, [a-z]+)*$/gm)?.length, 2);
});

test('a killed backup leaves no file of that name, and the next one succeeds', async (t) => {
  const tool = await largeStore(t, 48);
  const folder = join(dirname(tool.path), 'backups');
  mkdirSync(folder);
  const file = join(folder, 'copy.db');
  // A busy machine may stop this process until a backup has ended before it is killed.
  for (let attempt = 1, isCaught = false; !isCaught; attempt++) {
    const child = spawnCli(['backup', file, '--database', tool.database]);
    const ended = new Promise<NodeJS.Signals | null>((resolve) =>
      child.once('close', (_code, signal) => resolve(signal)),
    );
    // No pause, so that it is caught in the act.
    const untilMs = performance.now() + 120_000;
    while (!existsSync(`${file}.part`) && !existsSync(file) && performance.now() < untilMs);
    child.kill('SIGKILL');
    isCaught = (await ended) === 'SIGKILL' && existsSync(`${file}.part`);
    if (isCaught) break;
    assert.ok(attempt < 10, 'every backup ended before it was killed');
    rmSync(file, { force: true });
  }
  assert.ok(!existsSync(file), 'what is not whole has no name');
  assert.equal((await tool.json<BackupJson>('backup', file)).traces, 48);
  assert.deepEqual(readdirSync(folder), ['copy.db']);
  assert.equal((await idsIn(file)).flat().length, 48);
});

test('a backup on a full disk says so and leaves no file', async (t) => {
  const mount = await mountTmpfs(t, 'size=4m');
  if (mount.kind === 'impossible') return skipUnlessCi(t, mount.reason);
  const tool = await largeStore(t, 8);
  const before = hashOfFile(tool.path);
  const words = /^Cannot back up .*tracetally\.db to .*copy\.db: .*full.*\.\n$/;
  assertRefused(await tool.run('backup', join(mount.folder, 'copy.db')), 1, words);
  assert.deepEqual(readdirSync(mount.folder), []);
  assert.equal(hashOfFile(tool.path), before);
  assert.equal((await tool.run('verify')).code, 0);
});

describe('a backup is refused with a clear message and changes nothing', () => {
  test('if the target exists already', async (t) => {
    const tool = await largeStore(t, 1);
    const file = join(dirname(tool.path), 'copy.db');
    writeFileSync(file, 'precious');
    assertRefused(await tool.run('backup', file), 1, /copy\.db already exists\. Choose another/);
    assert.equal(readFileSync(file, 'utf8'), 'precious');
    const before = hashOfFile(tool.path);
    for (const taken of [tool.path, dirname(tool.path), '']) {
      assertRefused(await tool.run('backup', taken), 1, /already exists/);
    }
    assert.equal(hashOfFile(tool.path), before);
    assert.deepEqual(
      readdirSync(dirname(tool.path)).filter((name) => name.includes('.part')),
      [],
    );
  });

  test('if the folder is missing', async (t) => {
    const tool = await largeStore(t, 1);
    const folder = join(dirname(tool.path), 'no', 'such');
    assertRefused(
      await tool.run('backup', join(folder, 'x.db')),
      1,
      /^The folder \/.*such.* does not exist/,
    );
    assert.ok(!existsSync(dirname(folder)));
  });

  test('if there is no database, or it is of another application', async (t) => {
    const tool = toolInFolder(t);
    const file = join(dirname(tool.path), 'copy.db');
    assertRefused(
      await tool.run('backup', file),
      1,
      /^The database \/.*tracetally\.db does not exist\.\n/,
    );
    assert.deepEqual(readdirSync(dirname(tool.path)), []);
    const theirs = new DatabaseSync(tool.path);
    theirs.exec('create table theirs (x)');
    theirs.close();
    assertRefused(await tool.run('backup', file), 1, /not a TraceTally database/);
    writeFileSync(tool.path, 'no database at all, just some words');
    assertRefused(await tool.run('backup', file), 1, /not a database/);
    assert.ok(!existsSync(file) && !existsSync(`${file}.part`));
  });

  test('if the database is damaged', async (t) => {
    const tool = await largeStore(t, 1);
    const harmed = toolOn(join(dirname(tool.path), 'harmed.db'));
    copyFileSync(tool.path, harmed.path);
    const db = new DatabaseSync(harmed.path, { defensive: false });
    db.exec('pragma writable_schema = on');
    db.exec("update sqlite_schema set rootpage = 3 where name = 'traces'");
    db.close();
    const file = join(dirname(tool.path), 'copy.db');
    const words = /^Cannot back up .*harmed\.db to .*copy\.db: the copy is damaged: /;
    assertRefused(await harmed.run('backup', file), 1, words);
    assert.ok(!existsSync(file) && !existsSync(`${file}.part`));
  });

  test('if the store is PostgreSQL', async () => {
    const database = ['--database', 'postgres://u@127.0.0.1:1/x'];
    const result = await callCli(['backup', '/nowhere/x', ...database]);
    assertRefused(result, 1, /^Only SQLite databases can be backed up.*pg_dump/);
  });
});
