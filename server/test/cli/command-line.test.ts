import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { commandLine } from '../../src/cli/command-line.ts';
import { programOf } from '../../src/cli/program.ts';
import type { Start } from '../../src/cli/program.ts';
import { flagWords, shellWord } from '../../src/cli/shell-words.ts';

describe('the program is named as it was started', () => {
  const start: Start = {
    node: 'node',
    script: '/src/tally/server/bin/tracetally.js',
    folder: '/src/tally',
    searchPath: ['/usr/local/bin', '/usr/bin'],
    npm: null,
  };
  const checkout = { packageFolder: '/src/tally', shellFolder: '/src/tally' };
  const rows: [what: string, start: Partial<Start>, run: string, serve: string][] = [
    ['by npm in the checkout', { npm: checkout }, 'npm run -s tracetally --', 'npm start --'],
    [
      'by npm below the checkout',
      { npm: { ...checkout, shellFolder: '/src/tally/docs' } },
      'npm run -s tracetally --',
      'npm start --',
    ],
    [
      'by npm from elsewhere',
      { npm: { ...checkout, shellFolder: '/src/tally-data' } },
      'npm run -s --prefix /src/tally tracetally --',
      'npm start --prefix /src/tally --',
    ],
    [
      'by the shell, installed',
      { script: '/usr/local/bin/tracetally' },
      'tracetally',
      'tracetally serve',
    ],
    [
      'by its path, installed outside the search path',
      { script: '/opt/my tools/tracetally' },
      `'/opt/my tools/tracetally'`,
      `'/opt/my tools/tracetally' serve`,
    ],
    [
      'by npx',
      { script: '/app/node_modules/.bin/tracetally' },
      'npx tracetally',
      'npx tracetally serve',
    ],
    [
      'by a script of a package that depends on it',
      {
        script: '/app/node_modules/.bin/tracetally',
        searchPath: ['/app/node_modules/.bin'],
        npm: { packageFolder: '/app', shellFolder: '/app' },
      },
      'npx tracetally',
      'npx tracetally serve',
    ],
    [
      'by Node.js in the checkout',
      {},
      'node server/bin/tracetally.js',
      'node server/bin/tracetally.js serve',
    ],
    [
      'by Node.js from elsewhere',
      { folder: '/src/tall', node: '/opt/node 26/node' },
      `'/opt/node 26/node' /src/tally/server/bin/tracetally.js`,
      `'/opt/node 26/node' /src/tally/server/bin/tracetally.js serve`,
    ],
    [
      'by a script of npm that is not ours',
      { npm: { packageFolder: '/app', shellFolder: '/app' } },
      'node server/bin/tracetally.js',
      'node server/bin/tracetally.js serve',
    ],
  ];
  for (const [what, given, run, serve] of rows) {
    test(what, () => assert.deepEqual(programOf({ ...start, ...given }), { run, serve }));
  }
});

describe('a word reaches a program through the shell as it is', () => {
  const words = [
    'plain',
    'two words',
    `it's`,
    '"quoted"',
    '$HOME',
    '`id`',
    '$(id)',
    'a\\b',
    '*',
    '~',
    '#x',
    '!x',
    'a;b',
    'a&b|c',
    'Zwölf ☂',
    '',
    `'`,
    `''"'`,
  ];
  for (const word of words) {
    test(JSON.stringify(word), () => {
      const { stdout } = spawnSync('sh', ['-c', `printf %s ${shellWord(word)}`]);
      assert.equal(stdout.toString(), word);
    });
  }
  test('words without special characters are not quoted', () => {
    for (const word of ['demo', '--team', 'sqlite:./data/x.db', 'http://127.0.0.1:4000/v1']) {
      assert.equal(shellWord(word), word);
    }
  });
});

describe('a command line repeats the database', () => {
  const program = { run: 'tracetally', serve: 'tracetally serve' };
  const rows: [database: string | undefined, line: string][] = [
    [undefined, 'tracetally keys list'],
    ['sqlite:./data/tracetally.db', 'tracetally keys list'],
    ['sqlite:./other.db', 'tracetally keys list --database sqlite:./other.db'],
    ['sqlite:./my data.db', `tracetally keys list --database 'sqlite:./my data.db'`],
    ['postgres://tally@db/t', 'tracetally keys list --database postgres://tally@db/t'],
    ['postgres://tally:secret@db/t', 'tracetally keys list --database "$TRACETALLY_DATABASE"'],
    [
      'postgres://user:secret@/t?host=/tmp',
      'tracetally keys list --database "$TRACETALLY_DATABASE"',
    ],
    ['postgres://db/t?password=secret', 'tracetally keys list --database "$TRACETALLY_DATABASE"'],
  ];
  for (const [database, line] of rows) {
    test(database ?? 'none', () => {
      assert.equal(commandLine(program, { database }, ['keys', 'list']), line);
    });
  }
  test('serve is started in its own way', () => {
    const npm = { run: 'npm run -s tracetally --', serve: 'npm start --' };
    assert.equal(commandLine(npm, {}, ['serve', '--port', '1']), 'npm start -- --port 1');
  });
  test('a value that begins with a dash is joined to its flag', () => {
    assert.deepEqual(flagWords('team', '-x'), ['--team=-x']);
    assert.deepEqual(flagWords('team', 'x'), ['--team', 'x']);
  });
});
