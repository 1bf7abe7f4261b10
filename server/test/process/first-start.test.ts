import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import {
  assertRefused,
  call,
  postTrace,
  runServeToEnd,
  startServer,
  toolInFolder,
} from '../cli/helpers.ts';
import type { TraceJson } from '../cli/helpers.ts';
import { spawnCli } from '../support/cli.ts';
import { needDashboard } from '../support/dashboard.ts';
import { temporaryFolder } from '../support/service.ts';
import { freePort, holdPort, launcher, plainEnvironment, runProgram } from './helpers.ts';

needDashboard();

const keyPattern = /tt_[0-9A-Za-z]{36}/g;

function keysIn(text: string): string[] {
  return [...new Set(text.match(keyPattern))];
}

/** The commands that the greeting shows, exactly as printed. */
function printedCommands(stdout: string): string[] {
  return [...stdout.matchAll(/^ {2}(curl (?:.*\\\n)*.*)$/gm)].map(([, command]) => command ?? '');
}

/** `tracetally serve` with only these flags and variables; returns its address or its output. */
async function listen(
  t: TestContext,
  flags: readonly string[],
  env: Record<string, string>,
): Promise<{ url: string | null; stderr: string }> {
  const child = spawnCli(['serve', ...flags], env);
  t.after(() => child.kill('SIGKILL'));
  let stdout = '';
  let stderr = '';
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  return new Promise((resolve) => {
    child.stdout.on('data', (data: Buffer) => {
      stdout += data.toString();
      const url = /listening on (\S+)/.exec(stdout)?.[1];
      if (url !== undefined) resolve({ url, stderr });
    });
    child.once('close', () => resolve({ url: null, stderr }));
  });
}

async function signIn(url: string, body: { code: string | undefined }) {
  const response = await fetch(`${url}/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { team } = (await response.json()) as { team?: { name: string } };
  return { status: response.status, team: team?.name };
}

describe('how it starts', { concurrency: 2 }, () => {
  for (const [name, flags] of Object.entries({
    'by default': [],
    'under a base path': ['--base-path', '/v1'],
    'on all addresses': ['--host', '0.0.0.0'],
  })) {
    test(`the first start prints one key and commands that work when pasted, ${name}`, async (t) => {
      const tool = toolInFolder(t);
      const server = await startServer(t, tool, ['--log-level', 'debug', ...flags]);
      const [key, ...more] = keysIn(server.stdout());
      assert.ok(key);
      assert.deepEqual(more, []);
      assert.equal(server.stdout().match(new RegExp(`^\\s*${key}\\s*$`, 'gm'))?.length, 1);

      const link = /^ {2}(\S+)#code=(\S+)$/m.exec(server.stdout());
      assert.equal(link?.[1], `${server.url}/`);
      assert.ok(!server.stdout().includes(`#key=`) && !link?.[2]?.includes(key.slice(3)));
      const entered = await signIn(server.url, { code: link?.[2] });
      assert.deepEqual([entered.status, entered.team], [201, 'default']);
      assert.equal((await signIn(server.url, { code: link?.[2] })).status, 401, 'it works once');

      const [record, overview, ...rest] = printedCommands(server.stdout());
      assert.ok(record && overview && rest.length === 0, server.stdout());
      const recorded = await runProgram('bash', ['-c', record]);
      assert.equal(recorded.code, 0, recorded.stderr);
      const trace = JSON.parse(recorded.stdout) as TraceJson;
      assert.match(trace.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
      assert.equal(trace.model, 'gpt-4o');
      assert.deepEqual((await call(`${server.url}/traces/${trace.id}`, key)).body, trace);

      const seen = await runProgram('bash', ['-c', overview]);
      assert.equal((JSON.parse(seen.stdout) as { total_calls: number }).total_calls, 1);
      assert.ok(!server.stderr().includes(key.slice(3)), 'the key is in the log');
      const teams = await tool.json<{ team: string; traces: number }[]>('teams', 'list');
      assert.deepEqual(
        teams.map(({ team, traces }) => [team, traces]),
        [['default', 1]],
      );

      await server.end('SIGINT');
      const again = await startServer(t, tool, flags);
      assert.deepEqual(keysIn(again.stdout()), []);
      assert.doesNotMatch(again.stdout(), /code=/);
      assert.equal((await call(`${again.url}/traces/${trace.id}`, key)).status, 200);
    });
  }

  test('a start that fails does not use up the first key', async (t) => {
    const tool = toolInFolder(t);
    const { port, release } = await holdPort();
    const failed = await runServeToEnd(['--port', String(port), '--database', tool.database]);
    release();
    assertRefused(failed, 1, new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is in use.*--port`));
    const server = await startServer(t, tool);
    const [key = ''] = keysIn(server.stdout());
    assert.equal((await postTrace(server.url, key)).status, 201);
  });

  test('an address of another machine is refused with a clear message', async (t) => {
    const tool = toolInFolder(t);
    const flags = ['--host', '203.0.113.7', '--port', '0', '--database', tool.database];
    assertRefused(await runServeToEnd(flags), 1, /Cannot listen on 203\.0\.113\.7/);
  });

  test('TRACETALLY_API_KEY works from the start and ends when it is removed', async (t) => {
    const tool = toolInFolder(t);
    const secret = 'my-own-secret/of+20.chars';
    const flags = ['--log-level', 'debug'];
    const first = await startServer(t, tool, flags, { TRACETALLY_API_KEY: secret });
    const posted = await postTrace(first.url, secret);
    assert.equal(posted.status, 201);
    const teams = await tool.json<{ team: string; team_id: string }[]>('teams', 'list');
    assert.deepEqual(
      teams.map(({ team, team_id }) => [team, team_id]),
      [['default', posted.body.team_id]],
    );
    assert.equal((await call(`${first.url}/analytics/overview`, secret)).status, 200);
    assert.equal((await postTrace(first.url, `${secret}x`)).status, 401);
    assert.equal(await first.end('SIGINT'), 0);
    const everything = [first.stdout(), first.stderr(), readFileSync(tool.path, 'latin1')].join('');
    assert.ok(!everything.includes(secret), 'the key was printed, logged or stored');

    const second = await startServer(t, tool);
    assert.equal((await postTrace(second.url, secret)).status, 401);
    assert.equal(await second.end('SIGINT'), 0);

    const third = await startServer(t, tool, [], { TRACETALLY_API_KEY: secret });
    assert.equal((await call(`${third.url}/traces/${posted.body.id}`, secret)).status, 200);
  });

  test('an invalid TRACETALLY_API_KEY is refused, and the message does not repeat it', async (t) => {
    const tool = toolInFolder(t);
    for (const value of [
      'hunter2-too-short',
      'hunter2 with spaces in the middle',
      'x'.repeat(201),
    ]) {
      const flags = ['--port', '0', '--database', tool.database];
      const refused = await runServeToEnd(flags, { TRACETALLY_API_KEY: value });
      assertRefused(refused, 1, /TRACETALLY_API_KEY .*20 to 200 visible ASCII characters/);
      assert.ok(!refused.stderr.includes(value.slice(0, 7)), refused.stderr);
    }
    assert.ok(!existsSync(tool.path));
  });

  test('a flag wins over the environment, and the environment over the default', async (t) => {
    const folder = temporaryFolder();
    t.after(() => folder.remove());
    const inFolder = (name: string) => join(folder.path, name);
    const [envPort, flagPort] = [await freePort(), await freePort()];
    const env = {
      TRACETALLY_HOST: '127.0.0.2',
      TRACETALLY_PORT: String(envPort),
      TRACETALLY_DATABASE: `sqlite:${inFolder('env.db')}`,
      TRACETALLY_BASE_PATH: '/env',
      TRACETALLY_LOG_LEVEL: 'silent',
    };
    const byEnv = await listen(t, [], env);
    assert.deepEqual(byEnv, { url: `http://127.0.0.2:${envPort}/env`, stderr: '' });
    assert.ok(existsSync(inFolder('env.db')));
    assert.equal((await fetch(`${byEnv.url}/readyz`)).status, 200);

    const flags = ['--host', '127.0.0.3', '--port', String(flagPort), '--base-path', '/flag'];
    const database = ['--database', `sqlite:${inFolder('flag.db')}`, '--log-level', 'info'];
    const byFlag = await listen(t, [...flags, ...database], env);
    assert.equal(byFlag.url, `http://127.0.0.3:${flagPort}/flag`);
    assert.ok(existsSync(inFolder('flag.db')));
    assert.match(byFlag.stderr, /"level":"info"/);
    assert.equal((await fetch(`${byFlag.url}/readyz`)).status, 200);
  });

  test('without settings it listens on 127.0.0.1:4000 and keeps ./data/tracetally.db', async (t) => {
    const folder = temporaryFolder();
    t.after(() => folder.remove());
    const options = { cwd: folder.path, env: plainEnvironment() };
    const args = [launcher, 'teams', 'create', 'here'];
    const created = await runProgram(process.execPath, args, options);
    assert.equal(created.code, 0, created.stderr);
    assert.ok(existsSync(join(folder.path, 'data', 'tracetally.db')));

    const database = `sqlite:${join(folder.path, 'other.db')}`;
    const { url, stderr } = await listen(t, ['--database', database], {});
    // Where something else listens there, the refusal names the default as well.
    assert.match(
      url ?? stderr,
      /^http:\/\/127\.0\.0\.1:4000$|^Port 4000 on 127\.0\.0\.1 is in use/m,
    );
  });

  test('on an old Node.js the launcher says which one it needs', async (t) => {
    const candidates = ['/usr/bin/node', '/usr/local/bin/node'];
    const versions = await Promise.all(
      candidates.filter(existsSync).map(async (path) => {
        const { stdout } = await runProgram(path, ['--version']);
        return { path, version: stdout.trim(), major: Number(/^v(\d+)/.exec(stdout)?.[1]) };
      }),
    );
    const old = versions.find(({ major }) => major < 26);
    if (!old) return t.skip('there is no Node.js older than 26 on this machine');
    const refused = await runProgram(old.path, [launcher, 'serve'], { env: plainEnvironment() });
    assertRefused(refused, 1, /^TraceTally needs Node\.js 26 or newer/);
    assert.ok(refused.stderr.includes(old.version), refused.stderr);
  });
});
