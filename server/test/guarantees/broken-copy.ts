import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const server = fileURLToPath(new URL('../../', import.meta.url));

/**
 * A copy of the service with one guarantee taken out, as a control: a test that passes on it proves nothing. The shipped code
 * has no switch for this. Returns the copy's launcher.
 */
export function brokenCopy(folder: string, file: string, from: string, to: string): string {
  const copy = join(folder, 'broken', 'server');
  mkdirSync(copy, { recursive: true });
  for (const part of ['bin', 'src', 'migrations', 'package.json'])
    cpSync(join(server, part), join(copy, part), { recursive: true });
  symlinkSync(join(server, '../node_modules'), join(folder, 'broken', 'node_modules'));
  const path = join(copy, 'src', file);
  const text = readFileSync(path, 'utf8');
  assert.ok(text.includes(from), `${file} no longer holds: ${from}`);
  writeFileSync(path, text.replace(from, to));
  return join(copy, 'bin/tracetally.js');
}
