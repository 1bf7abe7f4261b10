import { globSync } from 'node:fs';
import { join } from 'node:path';
import { bundleOf, runBundle } from '../../../server/test/support/bundle.ts';
import { useBrowser } from './browser.ts';

const folder = join(import.meta.dirname, '..');
const bundles = globSync('bundles/*.test.ts', { cwd: folder }).length;

/** Runs a share of the tests of the page in this process, with one browser. */
export async function runDashboardBundle(number: number): Promise<void> {
  useBrowser();
  const files = globSync('*.test.ts', { cwd: folder }).map((name) => join(folder, name));
  await runBundle(bundleOf(files, number, bundles));
}
