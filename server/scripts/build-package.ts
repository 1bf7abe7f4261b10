/** Builds what the npm package contains: the service as JavaScript in `dist`, the dashboard in `page`, and the license. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const server = fileURLToPath(new URL('../', import.meta.url));
const checkout = fileURLToPath(new URL('../../', import.meta.url));
const tsc = fileURLToPath(import.meta.resolve('typescript/package.json')).replace(
  /package\.json$/,
  'bin/tsc',
);

/** Modules that are loaded by name: by the launcher, by `warm-up.js` or in a thread of their own. */
const entries = [
  'cli/cli',
  'main',
  'http/app',
  'store/sqlite/open-sqlite-store',
  'http/decoding/decoding-thread',
  'store/sqlite/writer-thread',
  'store/sqlite/reading-thread',
  'store/postgres/roller-thread',
];

function run(...args: string[]): void {
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', timeout: 300_000 });
  if (status !== 0) process.exit(status ?? 1);
}

/**
 * Node.js needs about a millisecond per file, so 300 modules become a few files. They are not minified, so that stack traces can be
 * read, and contain nothing of other packages, so that npm can update those.
 */
async function bundle(): Promise<void> {
  const bundled = await rolldown({
    input: Object.fromEntries(entries.map((name) => [name, `${server}src/${name}.ts`])),
    platform: 'node',
    external: /^[^./]/,
  });
  await bundled.write({
    dir: `${server}dist`,
    entryFileNames: '[name].js',
    // This one finds other files relative to itself.
    codeSplitting: { groups: [{ name: 'installation', test: /\/src\/installation\.ts$/ }] },
    chunkFileNames: ({ name }) => (name === 'installation' ? '[name].js' : 'shared/[name].js'),
    minifyInternalExports: false,
  });
}

for (const folder of ['dist', 'page']) {
  rmSync(`${server}${folder}`, { recursive: true, force: true });
}
run(tsc, '-p', `${server}tsconfig.build.json`);
await bundle();
run(`${checkout}dashboard/build.ts`, '--if-stale', '--or-fail');
cpSync(`${checkout}dashboard/dist`, `${server}page`, { recursive: true });
copyFileSync(`${checkout}LICENSE`, `${server}LICENSE`);
