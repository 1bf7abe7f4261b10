import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { shellWord } from '../../src/cli/shell-words.ts';
import { eventually } from '../support/eventually.ts';
import type { CliResult } from '../support/cli.ts';
import { needDashboard } from '../support/dashboard.ts';
import { temporaryFolder } from '../support/service.ts';
import { freePort, launcher, plainEnvironment, runProgram } from '../process/helpers.ts';
import { assertNoStack, startServer, toolInFolder, toolOn } from './helpers.ts';
import type { NewKeyJson } from './helpers.ts';

const checkout = fileURLToPath(new URL('../../../', import.meta.url)).replace(/\/$/, '');
const hostileName = `it's "my" $HOME \`team\`; # 7 ☂`;

interface Shell {
  folder: string;
  env: NodeJS.ProcessEnv;
}

/** A shell that npm did not start. */
function userShell(folder: string, more: NodeJS.ProcessEnv = {}): Shell {
  const kept = Object.entries(plainEnvironment()).filter(
    ([name]) => !/^npm_|^INIT_CWD$|^NODE$/.test(name),
  );
  return { folder, env: { ...Object.fromEntries(kept), ...more } };
}

function paste(line: string, { folder, env }: Shell): Promise<CliResult> {
  return runProgram('sh', ['-c', line], { cwd: folder, env });
}

/** The command line of the one hint in a text. */
function hintIn(text: string): string {
  const hints = [...text.matchAll(/run: (.+)$/gm)].map(([, line]) => line ?? '');
  assert.equal(hints.length, 1, text);
  return hints[0] ?? '';
}

async function pasteWell(line: string, shell: Shell): Promise<CliResult> {
  const result = await paste(line, shell);
  assert.equal(result.code, 0, `${line}\n${result.stderr}`);
  return result;
}

const folder = temporaryFolder();
after(() => folder.remove());

const bin = join(folder.path, 'bin');
mkdirSync(bin);
symlinkSync(launcher, join(bin, 'tracetally'));
const nodeFolder = dirname(process.execPath);
const withPath = (...folders: string[]) => ({
  PATH: [...folders, process.env['PATH'] ?? ''].join(delimiter),
});

const ways: Record<string, { shell: Shell; start: string; expected: string }> = {
  'installed, by its name': {
    shell: userShell(folder.path, withPath(bin, nodeFolder)),
    start: 'tracetally',
    expected: 'tracetally ',
  },
  'installed, by its path': {
    shell: userShell(folder.path, withPath(nodeFolder)),
    start: './bin/tracetally',
    expected: `${join(bin, 'tracetally')} `,
  },
  'by npm in a checkout': {
    shell: userShell(checkout),
    start: 'npm run -s tracetally --',
    expected: 'npm run -s tracetally -- ',
  },
  'by npm from another folder': {
    shell: userShell(folder.path),
    start: `npm run -s --prefix ${shellWord(checkout)} tracetally --`,
    expected: `npm run -s --prefix ${shellWord(checkout)} tracetally -- `,
  },
  'by Node.js from another folder': {
    shell: userShell(folder.path),
    start: `${shellWord(process.execPath)} ${shellWord(launcher)}`,
    expected: `${shellWord(process.execPath)} ${shellWord(launcher)} `,
  },
};

describe('hints can be pasted unchanged', { concurrency: 2 }, () => {
  for (const [i, [way, { shell, start, expected }]] of Object.entries(ways).entries()) {
    test(`started ${way}`, async () => {
      const database = shellWord(`sqlite:${join(folder.path, `it's ${i}.db`)}`);
      const create = `${start} teams create ${shellWord(hostileName)} --database ${database}`;
      const created = await pasteWell(create, shell);
      const createKey = hintIn(created.stderr);
      assert.ok(createKey.startsWith(expected), createKey);
      const key = await pasteWell(createKey, shell);
      assert.match(key.stdout, /^tt_\w{36}\n$/);
      assert.ok(key.stderr.includes(`the team "${hostileName}"`), key.stderr);
      const signIn = await pasteWell(hintIn(key.stderr), shell);
      assert.match(signIn.stdout, /^http:\/\/127\.0\.0\.1:4000\/#code=ttc_/);
      const misused = await paste(`${start} keys list --tem x`, shell);
      const help = await pasteWell(hintIn(misused.stderr), shell);
      assert.ok(help.stdout.includes(`Usage: ${expected}keys list`), help.stdout);
    });
  }

  test('a database in the environment is repeated, so that the line works without it', async () => {
    const shell = userShell(folder.path);
    const { start } = ways['by Node.js from another folder'] ?? { start: '' };
    const env = { ...shell.env, TRACETALLY_DATABASE: 'sqlite:./by environment.db' };
    const created = await pasteWell(`${start} teams create seen`, { ...shell, env });
    const key = await pasteWell(hintIn(created.stderr), shell);
    assert.doesNotMatch(key.stderr, /Created the team/);
  });

  test('an error that says what to run prints a line that runs', async () => {
    const tool = toolOn(join(folder.path, 'errors and spaces.db'));
    const shell = userShell(process.cwd());
    const { key_id: id } = await tool.json<NewKeyJson>('keys', 'create', '--team', hostileName);
    const fresh = await tool.json<NewKeyJson>('keys', 'rotate', id);
    const list = await tool.run('keys', 'list');
    const fails = async (...args: string[]): Promise<string> => {
      const result = await tool.run(...args);
      assert.equal(result.code, 1);
      assertNoStack(result);
      return (await pasteWell(hintIn(result.stderr), shell)).stdout;
    };
    assert.equal(await fails('keys', 'revoke', 'key_none'), list.stdout);
    assert.equal(await fails('sign-in', '--key-id', 'key_none'), list.stdout);
    assert.match(await fails('verify', '--team', 'none'), /^TEAM /);
    assert.match(await fails('keys', 'rotate', id), /^tt_/);
    await tool.run('keys', 'revoke', fresh.key_id);
    assert.match(await fails('keys', 'rotate', fresh.key_id), /^tt_/);
    await tool.json('teams', 'create', `'`);
    assert.match(await fails('sign-in', '--team', `'`), /^tt_/);
  });

  test('a team whose name begins with a dash', async () => {
    const tool = toolOn(join(folder.path, 'dash.db'));
    await tool.json('keys', 'create', '--team=-dash', '--scope', 'ingest');
    const refused = await tool.run('sign-in', '--team=-dash');
    await pasteWell(hintIn(refused.stderr), userShell(process.cwd()));
    assert.equal((await tool.run('sign-in', '--team=-dash')).code, 0);
  });

  test('the first start prints how to get another link, to its own address', async (t) => {
    needDashboard();
    const tool = toolInFolder(t);
    const server = await startServer(t, tool, ['--base-path', '/v1']);
    const line = /run:\n\n {2}(.+)\n/.exec(server.stdout())?.[1] ?? '';
    const { stdout } = await pasteWell(line, userShell(process.cwd()));
    assert.ok(stdout.startsWith(`${server.url}/#code=ttc_`), stdout);
  });

  test('demo without a server prints how to start one and how to sign in', async (t) => {
    const tool = toolInFolder(t);
    const port = String(await freePort());
    const place = ['--port', port, '--base-path', '/tally'];
    const made = await tool.run('demo', '--count', '10', '--team', hostileName, ...place);
    assert.equal(made.code, 0, made.stderr);
    const [serve = '', signIn = '', ...more] = [...made.stdout.matchAll(/^ {2}(.+)$/gm)].map(
      ([, line]) => line,
    );
    assert.deepEqual(more, []);
    const shell = userShell(process.cwd());
    // A separate process group, so that a signal reaches what the shell has started.
    const server = spawn('sh', ['-c', serve], {
      cwd: shell.folder,
      env: shell.env,
      detached: true,
    });
    const ended = new Promise((resolve) => server.once('close', resolve));
    t.after(async () => {
      if (server.pid !== undefined) process.kill(-server.pid, 'SIGKILL');
      await ended;
    });
    const url = `http://127.0.0.1:${port}/tally`;
    await eventually('the server', 120_000, async () =>
      fetch(`${url}/healthz`).then(
        (response) => response.ok || null,
        () => null,
      ),
    );
    const { stdout } = await pasteWell(signIn, shell);
    const [link, code] = /^(.+)\/#code=(.+)\n$/.exec(stdout)?.slice(1) ?? [];
    assert.equal(link, url);
    const entered = await fetch(`${url}/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code }),
    });
    assert.equal(entered.status, 201);
  });
});
