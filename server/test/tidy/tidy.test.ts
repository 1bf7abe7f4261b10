import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { envOf, settings } from '../../src/config.ts';
import type { Setting } from '../../src/config.ts';
import { errorTable } from '../../src/errors.ts';
import { limits } from '../../src/limits.ts';
import { bundledFiles } from '../support/bundle.ts';
import {
  environmentReaders,
  importCycles,
  missingLimits,
  overgrown,
  packagesLoadedBy,
  undocumented,
  wrongImports,
} from './rules.ts';
import type { SourceFile } from './rules.ts';

const source = new URL('../../src/', import.meta.url);
const docs = new URL('../../../docs/', import.meta.url);

const files: SourceFile[] = globSync('**/*.ts', { cwd: source })
  .filter((path) => !path.endsWith('.d.ts'))
  .map((path) => ({ path, text: readFileSync(new URL(path, source), 'utf8') }));

/** How the row of each setting begins. */
function settingRows(): string[] {
  return Object.values<Setting>(settings).map((setting) => {
    const flag = setting.isEnvOnly ? '' : `\`--${setting.name}\``;
    const cells = [flag, `\`${envOf(setting)}\``, shownDefault(setting.fallback)];
    return cells.map((cell) => `| ${cell}`.trimEnd()).join(' ');
  });
}

function shownDefault(fallback = ''): string {
  return fallback === '' ? 'none' : `\`${fallback}\``;
}

test('the source folders were found', () => {
  const folders = new Set(files.map(({ path }) => path.split('/')[0]));
  for (const folder of ['core', 'store', 'ingest', 'http', 'cli', 'main.ts', 'config.ts'])
    assert.ok(folders.has(folder), folder);
});

test('no folder imports from a folder to its right', () => {
  assert.deepEqual(wrongImports(files), []);
  const planted = [
    { path: 'core/trace.ts', text: "import { openStore } from '../store/open-store.ts';" },
    { path: 'store/sqlite/open.ts', text: "import type { App } from '../../http/route.ts';" },
    { path: 'http/app.ts', text: "import { readConfig } from '../config.ts';" },
    { path: 'main.ts', text: "const { serve } = await import('./cli/serve.ts');" },
    { path: 'ingest/x.ts', text: "new Worker(new URL('../http/app.ts', import.meta.url))" },
  ];
  assert.equal(wrongImports(planted).length, planted.length);
  const allowed = [{ path: 'http/app.ts', text: "import { fail } from '../errors.ts';" }];
  assert.deepEqual(wrongImports(allowed), []);
});

test('a command does not load the libraries of the HTTP server, which would treble its time to start', () => {
  assert.deepEqual(packagesLoadedBy(files, 'cli/cli.ts'), ['close-with-grace']);
  const planted = [
    {
      path: 'cli/cli.ts',
      text: "import { query } from './query.ts';\nimport type { A } from 'a';",
    },
    { path: 'cli/query.ts', text: "import Type, {\n  Other,\n} from 'typebox';" },
  ];
  assert.deepEqual(packagesLoadedBy(planted, 'cli/cli.ts'), ['typebox']);
});

test('no file imports itself through others, not even for types', () => {
  assert.deepEqual(importCycles(files), []);
  const planted = [
    { path: 'a.ts', text: "import { b } from './b.ts';" },
    { path: 'b.ts', text: "import type { C } from './c/c.ts';" },
    { path: 'c/c.ts', text: "import type { A } from '../a.ts';" },
    { path: 'd.ts', text: "import { b } from './b.ts';" },
  ];
  assert.deepEqual(importCycles(planted), ['a.ts > b.ts > c/c.ts > a.ts']);
});

test('the environment is read in config.ts alone', () => {
  assert.deepEqual(environmentReaders(files), []);
  assert.ok(files.some(({ path, text }) => path === 'config.ts' && text.includes('process.env')));
  const planted = [{ path: 'http/app.ts', text: 'const level = process.env.LOG_LEVEL;' }];
  assert.deepEqual(environmentReaders(planted), ['http/app.ts']);
});

test('every error code stands in docs/errors.md', () => {
  const document = readFileSync(new URL('errors.md', docs), 'utf8');
  const codes = Object.keys(errorTable);
  assert.ok(codes.length > 15);
  assert.deepEqual(undocumented(codes, document), []);
  assert.deepEqual(undocumented([...codes, 'planted_code'], document), ['planted_code']);
});

test('every limit is in docs/limits.md with its value', () => {
  const document = readFileSync(new URL('limits.md', docs), 'utf8');
  assert.ok(Object.keys(limits).length > 15);
  assert.deepEqual(missingLimits(limits, document), []);
  assert.deepEqual(missingLimits({ plantedMax: 1, ...limits, pageRowsMax: 99 }, document), [
    '| `plantedMax` | 1 |',
    '| `pageRowsMax` | 99 |',
  ]);
});

test('every setting is in docs/operations.md with its variable and its default', () => {
  const document = readFileSync(new URL('operations.md', docs), 'utf8');
  const rows = settingRows();
  assert.ok(rows.length > 8);
  const missing = (all: readonly string[]) => all.filter((row) => !document.includes(row));
  assert.deepEqual(missing(rows), []);
  assert.equal(missing(['| `--planted` | `TRACETALLY_PLANTED` | none |']).length, 1);
});

test('no source file has outgrown one subject', () => {
  assert.deepEqual(overgrown(files, 350), []);
  assert.equal(overgrown([{ path: 'a.ts', text: '\n'.repeat(400) }], 350).length, 1);
});

test('every test file is run by npm test, once on the default store', () => {
  const server = new URL('../../', import.meta.url);
  const manifest = readFileSync(new URL('package.json', server), 'utf8');
  const { scripts } = JSON.parse(manifest) as { scripts: Record<string, string> };
  const run = ['test:beside', 'test:measured'].flatMap((name) => {
    const [, pattern = ''] = /"([^"]+)"/.exec(scripts[name] ?? '') ?? [];
    return globSync(pattern, { cwd: server });
  });
  // What a bundle runs, in its own process.
  const bundled = bundledFiles().map((path) => relative(fileURLToPath(server), path));
  assert.deepEqual(
    [...run, ...bundled].sort(),
    globSync('test/**/*.test.ts', { cwd: server }).sort(),
  );
});
