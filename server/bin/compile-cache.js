// A compile cache halves the time to start. In a checkout it also saves memory: the sources are TypeScript, and the compiler that strips
// their types stays in memory, about 40 MB in each thread, unless the cache has the result.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

const warmUp = fileURLToPath(new URL('warm-up.js', import.meta.url));

export function useCompileCache(isCheckout) {
  // A package brings its own folder, since it may be the only one there that it may write to.
  const place = isCheckout ? '../../node_modules/.cache/tracetally' : '../.cache';
  const folder = fileURLToPath(new URL(place, import.meta.url));
  const isNew = !existsSync(folder);
  try {
    mkdirSync(folder, { recursive: true });
  } catch {
    // An installation that cannot be written works too, only slower.
    return;
  }
  // Worker threads read the variable.
  process.env.NODE_COMPILE_CACHE = folder;
  if (isNew && isCheckout) spawnSync(process.execPath, [warmUp], { stdio: 'ignore' });
  enableCompileCache(folder);
}
