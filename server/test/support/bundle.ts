import { globSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, describe } from 'node:test';
import { pathToFileURL } from 'node:url';
import { testStore } from './store-place.ts';

const tests = join(import.meta.dirname, '..');

/** What depends on no process of its own. On PostgreSQL only what depends on the store runs again. */
const bundled =
  testStore === 'postgres' ? 'http' : '{cli,core,http,ingest,requests,security,store,tidy}';

export function bundledFiles(): string[] {
  return globSync(`${bundled}/*.test.ts`, { cwd: tests }).map((path) => join(tests, path));
}

/** A hook that hangs would otherwise stop the run for good; no file needs a tenth of this. */
const fileMsMax = 600_000;

/**
 * Runs the files of one bundle in this process, one after the other, because loading the service anew for each file takes more
 * processor time than most files need for their tests. Each file is a suite, so that its hooks run around its own tests.
 */
export async function runBundle(files: readonly string[]): Promise<void> {
  for (const file of files) await runFile(file);
}

/** Resolves when its tests have run, whether they passed or not, or when it turned out that it cannot be loaded. */
async function runFile(file: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  describe(relative(process.cwd(), file), { timeout: fileMsMax }, async () => {
    // Before the hooks of the file, which may fail.
    after(() => resolve());
    try {
      await import(pathToFileURL(file).href);
    } catch (error) {
      resolve();
      throw error;
    }
  });
  return promise;
}

/** The files of the bundle with this number, from 1: long files first, so that all bundles take about the same time. */
export function bundleOf(files: readonly string[], number: number, bundles: number): string[] {
  const sizes = new Map(files.map((file) => [file, statSync(file).size]));
  return files
    .toSorted((a, b) => (sizes.get(b) ?? 0) - (sizes.get(a) ?? 0))
    .filter((_, index) => snake(index, bundles) === number - 1);
}

/** 0, 1, 2, 2, 1, 0, 0, 1, … for three. */
function snake(index: number, bundles: number): number {
  const place = index % (2 * bundles);
  return place < bundles ? place : 2 * bundles - 1 - place;
}
