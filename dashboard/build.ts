import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

/** Builds the page into dashboard/dist. `--if-stale` does nothing where what is there was built from the same files. */

const here = import.meta.dirname;
const dist = join(here, 'dist');

if (process.argv.includes('--if-stale') && readStamp() === stampOfInputs()) {
  say('dashboard: up to date');
} else {
  await build();
}

async function build(): Promise<void> {
  const stamp = stampOfInputs();
  // Built beside and then moved, so that a failed build leaves the last good one, and a server never reads half a page.
  const next = `${dist}.next-${process.pid}`;
  try {
    await bundle(next);
    const gzipBytes = packAll(next);
    writeFileSync(join(next, 'stamp'), stamp);
    rmSync(dist, { recursive: true, force: true });
    renameSync(next, dist);
    say(`dashboard: built, ${(gzipBytes / 1000).toFixed(1)} kB as gzip in all`);
  } finally {
    rmSync(next, { recursive: true, force: true });
  }
}

async function bundle(outDir: string): Promise<void> {
  // Loaded only when there is something to build: it takes longer than the check above.
  const { build: viteBuild } = await import('vite');
  await viteBuild({
    root: here,
    configFile: false,
    // The page may be mounted under any path.
    base: './',
    publicDir: false,
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir,
      emptyOutDir: true,
      target: ['chrome111', 'edge111', 'firefox114', 'safari16.4'],
      // Nothing inline: the Content-Security-Policy allows files of this server only.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
    plugins: [
      {
        name: 'block-rendering',
        // The first paint waits for the script, which knows the theme that was chosen; so no flash of the other one.
        transformIndexHtml: {
          order: 'post',
          handler: (html) =>
            html.replace('<script type="module"', '<script type="module" blocking="render"'),
        },
      },
    ],
  });
}

/** Every text file also as .gz and .br, so that the server never packs. Returns the sum of the .gz. */
function packAll(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  let gzipBytes = 0;
  for (const name of names.filter((file) => /\.(html|js|css|svg)$/.test(file))) {
    const path = join(folder, name);
    const plain = readFileSync(path);
    const gzip = gzipSync(plain, { level: 9 });
    const params = {
      [constants.BROTLI_PARAM_QUALITY]: 11,
      [constants.BROTLI_PARAM_SIZE_HINT]: plain.length,
    };
    gzipBytes += gzip.length;
    writeFileSync(`${path}.gz`, gzip);
    writeFileSync(`${path}.br`, brotliCompressSync(plain, { params }));
  }
  return gzipBytes;
}

function readStamp(): string | null {
  const path = join(dist, 'stamp');
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
}

/** A hash over the name and the content of everything that the page is made of. */
function stampOfInputs(): string {
  const inputs = [
    ...['index.html', 'build.ts', 'package.json'].map((name) => join(here, name)),
    ...filesBelow(join(here, 'src')),
    ...filesBelow(join(here, '..', 'client', 'src')),
  ];
  const hash = createHash('sha256');
  for (const path of inputs.toSorted()) {
    const content = readFileSync(path);
    hash.update(`${relative(here, path).replaceAll(sep, '/')}\n${content.length}\n`);
    hash.update(content);
  }
  return hash.digest('hex');
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
