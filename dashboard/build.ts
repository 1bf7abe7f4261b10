import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

/**
 * Builds the page into dashboard/dist. `--if-stale`, before a start of the service, does nothing if what is there was built from the
 * same files. If it cannot build, it says so in one sentence, and the service starts with the last build or without the page; with
 * `--or-fail` it ends with 1.
 */

const here = import.meta.dirname;
const dist = join(here, 'dist');

if (!process.argv.includes('--if-stale')) {
  await build();
} else if (readStamp() === stampOfInputs()) {
  say('dashboard: up to date');
} else {
  // When a build fails, Vite leaves some rejected promises unhandled; the promise that is awaited here is rejected too.
  process.on('unhandledRejection', () => {});
  await build().catch((error: unknown) => {
    process.stderr.write(`${explain(error)}\n`);
    if (process.argv.includes('--or-fail')) process.exitCode = 1;
  });
}

function explain(error: unknown): string {
  const rest =
    readStamp() === null
      ? 'The service starts without it.'
      : 'The service starts with the dashboard that was built before.';
  if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') {
    return `dashboard: not built, because its build tools are not installed. ${rest} To build it, run "npm ci" without --omit=dev.`;
  }
  return `dashboard: the build failed. ${rest} To see the error, run: npm run build -w dashboard`;
}

async function build(): Promise<void> {
  const stamp = stampOfInputs();
  // Built in another folder and then moved, so that a failed build keeps the last good one, and a server never reads an incomplete page.
  const [next, last] = [`${dist}.next-${process.pid}`, `${dist}.last-${process.pid}`];
  try {
    await bundle(next);
    const gzipBytes = packAll(next);
    writeFileSync(join(next, 'stamp'), stamp);
    if (existsSync(dist)) renameSync(dist, last);
    renameSync(next, dist);
    say(`dashboard: built, ${(gzipBytes / 1000).toFixed(1)} kB with gzip in total`);
  } finally {
    for (const folder of [next, last]) rmSync(folder, { recursive: true, force: true });
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
      // Nothing inline: the Content-Security-Policy allows only files from this server.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
    plugins: [
      {
        name: 'block-rendering',
        // The first paint waits for the script, which applies the chosen theme, so that the other theme never flashes.
        transformIndexHtml: {
          order: 'post',
          handler: (html) =>
            html.replace('<script type="module"', '<script type="module" blocking="render"'),
        },
      },
    ],
  });
}

/** Writes every text file also as .gz and .br, so that the server never compresses. Returns the total size of the .gz files. */
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
    join(here, '..', 'server', 'src', 'core', 'csv.ts'),
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
