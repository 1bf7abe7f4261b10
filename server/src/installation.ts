import { fileURLToPath } from 'node:url';

/**
 * A checkout runs the TypeScript sources. The npm package has the JavaScript that was bundled from them: this module is at the top of
 * its folder too, and a module that is loaded by name is at the same path below it.
 */
const isCheckout = import.meta.url.endsWith('.ts');

/** A module for a thread of its own, such as `store/sqlite/writer-thread`. */
export function moduleAt(path: string): URL {
  return new URL(`${path}${isCheckout ? '.ts' : '.js'}`, import.meta.url);
}

export const packageFile = new URL('../package.json', import.meta.url);

export function migrationsFolder(store: 'sqlite' | 'sqlite-rollups' | 'postgres'): URL {
  return new URL(`../migrations/${store}/`, import.meta.url);
}

/** The built dashboard. */
export const dashboardFolder = fileURLToPath(
  new URL(isCheckout ? '../../dashboard/dist' : '../page', import.meta.url),
);
