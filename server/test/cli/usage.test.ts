import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { generateKey } from '../../src/core/api-key.ts';
import { callCli, runCli, spawnCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/service.ts';
import {
  assertNoStack,
  assertRefused,
  inParallel,
  runServeToEnd,
  toolInFolder,
} from './helpers.ts';
import type { NewKeyJson } from './helpers.ts';

const tool = toolInFolder({ after });
await tool.json('teams', 'create', 'here');

const flagsOf: Record<string, readonly string[]> = {
  serve: [
    'host',
    'port',
    'database',
    'base-path',
    'log-level',
    'body-limit',
    'price-missing-costs',
    'metrics-listen',
    'metrics-teams',
    'trust-proxy',
    'rate-limit',
  ],
  'teams create': ['time-zone', 'json', 'database'],
  'teams set': ['time-zone', 'json', 'database'],
  'teams list': ['json', 'database'],
  'keys create': ['team', 'name', 'scope', 'expires', 'json', 'database'],
  'keys list': ['team', 'json', 'database'],
  'keys rotate': ['overlap', 'json', 'database'],
  'keys revoke': ['json', 'database'],
  'sign-in': ['team', 'key-id', 'url', 'json', 'database', 'host', 'port', 'base-path'],
  'prices set': [
    'input',
    'output',
    'cache-read',
    'cache-write',
    'reasoning',
    'from',
    'team',
    'json',
    'database',
  ],
  'prices list': ['json', 'database'],
  'prices unset': ['from', 'team', 'json', 'database'],
  'prices explain': ['tokens', 'provider', 'response-model', 'team', 'at', 'json', 'database'],
  'prices history': ['team', 'json', 'database'],
  reprice: [
    'from',
    'to',
    'model',
    'team',
    'only-uncosted',
    'include-client',
    'dry-run',
    'json',
    'database',
  ],
  verify: ['team', 'repair', 'json', 'database'],
  backup: ['json', 'database'],
  copy: ['from', 'to', 'follow', 'json'],
  distribute: ['json', 'database'],
  demo: ['count', 'team', 'days', 'seed', 'url', 'json', 'database', 'host', 'port', 'base-path'],
};

function tellsSettings(help: string): void {
  for (const name of ['HOST', 'PORT', 'DATABASE', 'BASE_PATH', 'API_KEY', 'LOG_LEVEL']) {
    assert.ok(help.includes(`TRACETALLY_${name}`), name);
  }
  for (const value of ['127.0.0.1', '4000', 'sqlite:./data/tracetally.db', 'info']) {
    assert.ok(help.includes(`default ${value}`), value);
  }
}

describe('how commands are used', { concurrency: 2 }, () => {
  test('the --help of every command lists its flags, variables and defaults', async () => {
    await inParallel(Object.entries(flagsOf), async ([command, flags]) => {
      const help = await callCli([...command.split(' '), '--help']);
      assert.equal(help.code, 0, command);
      assert.equal(help.stderr, '');
      assert.match(
        help.stdout,
        new RegExp(`^Usage: .*tracetally\\.js ${command} .*\\[FLAGS\\]$`, 'm'),
      );
      const told = [...help.stdout.matchAll(/^ +--([a-z-]+)/gm)].map(([, flag = '']) => flag);
      assert.deepEqual(told.sort(), [...flags, 'help'].sort(), command);
      if (command === 'serve') tellsSettings(help.stdout);
    });
  });

  test('tracetally --help names every command', async () => {
    const help = await callCli(['--help']);
    assert.equal(help.code, 0);
    for (const command of Object.keys(flagsOf)) {
      assert.match(help.stdout, new RegExp(`^ +${command} {2,}\\w`, 'm'));
    }
  });

  test('without a command the service is started, with or without flags', async (t) => {
    const folder = temporaryFolder();
    t.after(() => folder.remove());
    const env = { TRACETALLY_DATABASE: `sqlite:${folder.path}/a.db`, TRACETALLY_PORT: '0' };
    for (const args of [[], ['--log-level', 'silent'], ['--log-level=silent']]) {
      const child = spawnCli(args, env);
      t.after(() => void child.kill('SIGKILL'));
      let stdout = '';
      child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
      await eventually('the startup message', 120_000, () => stdout.includes('is listening on'));
      const ended = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGINT');
      assert.equal(await ended, 0);
    }
  });

  test('tracetally --version prints the version of the package', async () => {
    const packageUrl = new URL('../../package.json', import.meta.url);
    const { version } = JSON.parse(readFileSync(packageUrl, 'utf8')) as { version: string };
    const { code, stdout } = await runCli(['--version']);
    assert.deepEqual({ code, stdout }, { code: 0, stdout: `${version}\n` });
  });

  test('what is not understood ends with 2, a suggestion, and how to get help', async () => {
    const key = generateKey();
    const misuses: [args: string[], problem: string, helpAbout: string][] = [
      [['frobnicate'], 'Unknown command "frobnicate".', ''],
      [['serv'], 'Unknown command "serv". Did you mean serve?', ''],
      [['serv', '--port', '1'], 'Unknown command "serv". Did you mean serve?', ''],
      [['SERVE'], 'Unknown command "SERVE". Did you mean serve?', ''],
      [['key', 'list'], 'Unknown command "key". Did you mean keys list?', ''],
      [['signin'], 'Unknown command "signin". Did you mean sign-in?', ''],
      [['version'], 'Unknown command "version". Did you mean --version?', ''],
      [['help', 'serv'], 'Unknown command "serv". Did you mean serve?', ''],
      [[key], 'Unknown command "…".', ''],
      [
        ['teams'],
        '"teams" is not a complete command. Use teams create, teams set or teams list.',
        'teams',
      ],
      [['keys', 'creat'], 'Unknown command "keys creat". Did you mean keys create?', 'keys'],
      [
        ['keys', 'destroy'],
        'Unknown command "keys destroy". The commands are keys create, keys list, keys rotate, keys revoke.',
        'keys',
      ],
      [['--versoin'], 'Unknown flag --versoin. Did you mean --version? Put the command first.', ''],
      [['--port=1', 'serve'], 'Unknown flag --port. Put the command first.', ''],
      [['keys', 'list', '--tem', 'a'], 'Unknown flag --tem. Did you mean --team?', 'keys list'],
      [['keys', 'list', '--tem=a'], 'Unknown flag --tem. Did you mean --team?', 'keys list'],
      [['verify', '--data', 'x'], 'Unknown flag --data. Did you mean --database?', 'verify'],
      [['verify', '--hlep'], 'Unknown flag --hlep. Did you mean --help?', 'verify'],
      [['verify', '--frobnicate'], 'Unknown flag --frobnicate.', 'verify'],
      [['verify', '-t', 'a'], 'Unknown flag -t.', 'verify'],
      [['verify', '-team', 'a'], 'Unknown flag -team. Did you mean --team?', 'verify'],
      [['keys', 'list', '--team'], '--team needs a value.', 'keys list'],
      [
        ['keys', 'list', '--team', '--json'],
        '--team needs a value. If the value begins with a dash, write --team=VALUE.',
        'keys list',
      ],
      [['verify', '--json=yes'], '--json takes no value.', 'verify'],
      [['verify', 'stray'], 'Unexpected argument "stray": "verify" takes only flags.', 'verify'],
      [
        ['keys', 'revoke', 'a', key],
        'Unexpected argument "…": "keys revoke" takes only KEY_ID and flags.',
        'keys revoke',
      ],
      [['teams', 'create'], '"teams create" needs NAME.', 'teams create'],
      [['keys', 'rotate'], '"keys rotate" needs KEY_ID.', 'keys rotate'],
    ];
    await inParallel(misuses, async ([args, problem, helpAbout]) => {
      const refused = await callCli(args);
      assertRefused(refused, 2, /./);
      const [said, hint = '', ...rest] = refused.stderr.split('\n');
      assert.equal(said, problem);
      assert.ok(hint.endsWith(`tracetally.js ${`${helpAbout} --help`.trim()}`), hint);
      assert.deepEqual(rest, ['']);
    });
  });

  test('a flag with the name of an object member is unknown', async () => {
    await inParallel(['constructor', '__proto__', 'toString'], async (name) => {
      const refused = await callCli(['verify', `--${name}=x`]);
      assertRefused(refused, 2, new RegExp(`^Unknown flag --${name}\\.`));
    });
  });

  test('a group of commands has a --help that lists them, and only them', async () => {
    for (const group of ['keys', 'teams']) {
      const own = Object.keys(flagsOf).filter((name) => name.startsWith(`${group} `));
      const asked = [
        [group, '--help'],
        [group, '-h'],
        ['help', group],
      ];
      const helps = await Promise.all(asked.map((args) => callCli(args)));
      for (const { code, stdout, stderr } of helps) {
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
        assert.equal(stdout, helps[0]?.stdout);
      }
      const listed = [...(helps[0]?.stdout ?? '').matchAll(/^ {2}(\S+ \S+) {2,}\w/gm)];
      assert.deepEqual(
        listed.map(([, name]) => name),
        own,
      );
    }
  });

  test('help before a command is the same as --help after it', async () => {
    for (const command of ['keys create', 'serve']) {
      const words = command.split(' ');
      const [before, after_] = [
        await callCli(['help', ...words]),
        await callCli([...words, '--help']),
      ];
      assert.deepEqual(before, after_);
      assert.equal(before.code, 0);
    }
    assert.deepEqual(await callCli(['help']), await callCli(['--help']));
  });

  test('a bad value ends with 1 and names the flag', async () => {
    const create = ['keys', 'create', '--team', 'here'];
    const mistakes: [string[], RegExp][] = [
      [['keys', 'create'], /--team/],
      [[...create, '--scope', 'admin'], /--scope.*ingest, read, full/],
      [[...create, '--expires', '90'], /--expires/],
      [[...create, '--expires', '1w'], /--expires/],
      [[...create, '--name', 'tab\there'], /--name/],
      [['keys', 'create', '--team', 'line\nbreak'], /--team/],
      [['keys', 'create', '--team', 'x'.repeat(101)], /--team/],
      [['keys', 'create', '--team='], /--team/],
      [['teams', 'create', 'bell\u0007'], /NAME/],
      [['keys', 'rotate', 'key_x', '--overlap', 'soon'], /--overlap/],
      [['keys', 'list', '--team', 'nobody'], /no team "nobody"/],
      [['verify', '--team', 'nobody'], /no team "nobody"/],
    ];
    await inParallel(mistakes, async ([args, words]) => {
      assertRefused(await tool.run(...args), 1, words);
    });
    const teams = await tool.json<{ team: string; live_keys: number }[]>('teams', 'list');
    assert.deepEqual(
      teams.map(({ team, live_keys }) => [team, live_keys]),
      [['here', 0]],
      'a refused command has left something behind',
    );
  });

  test('a bad setting ends with 1 and names the flag or the variable it came from', async () => {
    const mistakes: [string[], Record<string, string>, RegExp][] = [
      [['--port', '70000'], {}, /--port .*65535/],
      [[], { TRACETALLY_PORT: '4e3' }, /TRACETALLY_PORT .*65535/],
      [['--base-path', 'v1'], {}, /--base-path .*\/v1/],
      [['--body-limit', '5M'], {}, /--body-limit .*bytes/],
      [['--rate-limit', '0'], {}, /--rate-limit/],
      [['--database', 'nonsense'], {}, /--database .*sqlite:PATH/],
    ];
    await inParallel(mistakes, async ([flags, env, words]) => {
      const refused = await runServeToEnd(['--database', tool.database, ...flags], env);
      assertRefused(refused, 1, words);
    });
    const listed = await runCli(['teams', 'list'], { TRACETALLY_DATABASE: 'nonsense' });
    assertRefused(listed, 1, /TRACETALLY_DATABASE .*sqlite:PATH/);
  });

  test('a life or overlap of centuries is refused, or works like any other', async (t) => {
    const other = toolInFolder(t);
    const far = await other.run('keys', 'create', '--team', 'far', '--expires', '999999d');
    assertNoStack(far);
    if (far.code !== 0) assertRefused(far, 1, /--expires/);
    const near = await other.json<NewKeyJson>('keys', 'create', '--team', 'far');
    const rotated = await other.run('keys', 'rotate', near.key_id, '--overlap', '999999d');
    assertNoStack(rotated);
    if (rotated.code !== 0) assertRefused(rotated, 1, /--overlap/);
    const list = await other.run('keys', 'list');
    assertNoStack(list);
    assert.equal(list.code, 0, 'one key with a far end breaks the list of all');
  });
});
