import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { appendFileSync, cpSync, readFileSync, statSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../../server/test/support/service.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../../', import.meta.url));
const folder = temporaryFolder();
after(() => folder.remove());

/** A copy of all that the page is made of, so that the page that is served stays as it is. */
function copyOf(source: string, name: string): string {
  const copy = join(folder.path, name);
  for (const path of ['src', 'index.html', 'build.ts', 'package.json'])
    cpSync(join(source, 'dashboard', path), join(copy, 'dashboard', path), { recursive: true });
  for (const path of ['client/src', 'server/src/core/csv.ts'])
    cpSync(join(source, path), join(copy, path), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

interface Built {
  words: string;
  /** What was printed to standard error. */
  problem: string;
  stamp: string;
  index: string;
  madeAtMs: number;
}

async function build(copy: string, ...flags: string[]): Promise<Built> {
  const dashboard = join(copy, 'dashboard');
  const { stdout, stderr } = await run(process.execPath, [join(dashboard, 'build.ts'), ...flags]);
  const index = join(dashboard, 'dist/index.html');
  return {
    words: stdout.trim(),
    problem: stderr.trim(),
    stamp: readFileSync(join(dashboard, 'dist/stamp'), 'utf8'),
    index: readFileSync(index, 'utf8'),
    madeAtMs: statSync(index).mtimeMs,
  };
}

test('the page is built only if a source has changed, and the check loads none of the build tools', async () => {
  const copy = copyOf(root, 'copy');
  const elsewhere = copyOf(copy, 'another/place');
  const first = await build(copy, '--if-stale');
  assert.match(first.words, /^dashboard: built, [\d.]+ kB with gzip in total$/);

  // The tools take a second to load. Without them, only a check that does not need them can succeed.
  unlinkSync(join(copy, 'node_modules'));
  const fresh = await build(copy, '--if-stale');
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  assert.equal(fresh.words, 'dashboard: up to date');
  assert.equal(fresh.madeAtMs, first.madeAtMs, 'nothing was written');

  const { stamp, index } = await build(elsewhere);
  assert.deepEqual(
    { stamp, index },
    { stamp: first.stamp, index: first.index },
    'the same anywhere',
  );

  // The page holds a part of the client.
  appendFileSync(join(copy, 'client/src/reads.ts'), '\n// A change.\n');
  const again = await build(copy, '--if-stale');
  assert.match(again.words, /built/);
  assert.notEqual(again.stamp, first.stamp);

  appendFileSync(join(copy, 'dashboard/src/main.tsx'), "\ndocument.title = 'changed';\n");
  const changed = await build(copy, '--if-stale');
  assert.match(changed.words, /built/);
  assert.notEqual(changed.index, first.index, 'the name of the script is another');

  appendFileSync(join(copy, 'dashboard/src/main.tsx'), '\nthis is no program\n');
  await assert.rejects(build(copy), 'a build that fails ends with an error');
  const failed = await build(copy, '--if-stale');
  assert.match(failed.problem, /^dashboard: the build failed\. .*built before\./m);
  assert.equal(failed.index, changed.index, 'the last build stays');
});
