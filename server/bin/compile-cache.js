// A compile cache shortens the start. In a checkout it also saves memory: the sources are TypeScript, and the compiler that strips
// their types stays in memory, about 40 MB in each thread, unless the cache has the result.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const beside = (path) => fileURLToPath(new URL(path, import.meta.url));

export function useCompileCache(isCheckout) {
  if (isCheckout) return useForSources(beside('../../node_modules/.cache/tracetally'));
  // The operator has chosen a folder, and Node.js uses it already.
  if (process.env.NODE_COMPILE_CACHE) return;
  // The installation may belong to another user, such as root.
  enableFirst([() => beside('../.cache'), () => join(homedir(), '.cache/tracetally')]);
}

function useForSources(folder) {
  const isNew = !existsSync(folder);
  if (enableFirst([() => folder]) && isNew) {
    spawnSync(process.execPath, [beside('warm-up.js')], { stdio: 'ignore' });
  }
}

/** Enables the first folder that can be read, or none. If it cannot be written, as in a container, what is in it is used all the same. */
function enableFirst(places) {
  for (const place of places) {
    try {
      const folder = place();
      mkdirSync(folder, { recursive: true });
      accessSync(folder, constants.R_OK | constants.X_OK);
      // Worker threads read the variable.
      process.env.NODE_COMPILE_CACHE = folder;
      enableCompileCache(folder);
      return true;
    } catch {
      // The next one, or slower without.
    }
  }
  return false;
}
