import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { temporaryFolder } from './service.ts';

/** What a thread in place of a decoding thread does with every body that does not belong to a team named "good". */
export type BadThread = 'loops' | 'runs out of memory' | 'exits' | 'throws' | 'is silent';

/** A module for such a thread. */
export function threadThat(does: BadThread): URL {
  const module = new URL('bad-thread-module.ts', import.meta.url);
  const folder = temporaryFolder();
  process.on('exit', () => folder.remove());
  const file = join(folder.path, 'thread.mjs');
  writeFileSync(
    file,
    `import { misbehave } from ${JSON.stringify(module.href)}; misbehave(${JSON.stringify(does)});`,
  );
  return pathToFileURL(file);
}
