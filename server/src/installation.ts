import { fileURLToPath } from 'node:url';

/** A checkout runs the TypeScript sources; the npm package has the JavaScript that was built from them, in folders of the same shape. */
const isCheckout = import.meta.url.endsWith('.ts');

/** A module in the folder of `importer`, for a thread of its own. */
export function moduleBeside(importer: string, name: string): URL {
  return new URL(`${name}${isCheckout ? '.ts' : '.js'}`, importer);
}

/** The built dashboard. */
export const dashboardFolder = fileURLToPath(
  new URL(isCheckout ? '../../dashboard/dist' : '../page', import.meta.url),
);
