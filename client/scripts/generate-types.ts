/** Writes client/src/api-types.ts from docs/openapi.json: `npm run client-types`. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { typesFromSchemas } from './types-from-schemas.ts';
import type { Schema } from './types-from-schemas.ts';

const root = new URL('../../', import.meta.url);
const target = new URL('client/src/api-types.ts', root);
const head = '// Written by `npm run client-types` from docs/openapi.json; edits are lost.\n\n';

/** What the file must hold, formatted as the rest of the source is. */
export function apiTypes(): string {
  const document = JSON.parse(readFileSync(new URL('docs/openapi.json', root), 'utf8')) as {
    components: { schemas: Record<string, Schema> };
  };
  const path = fileURLToPath(target);
  const formatter = fileURLToPath(new URL('node_modules/oxfmt/bin/oxfmt', root));
  const formatted = spawnSync(process.execPath, [formatter, `--stdin-filepath=${path}`], {
    input: head + typesFromSchemas(document.components.schemas),
    encoding: 'utf8',
    cwd: fileURLToPath(root),
  });
  if (formatted.status !== 0) throw new Error(`oxfmt failed: ${formatted.stderr}`);
  return formatted.stdout;
}

if (import.meta.main) writeFileSync(target, apiTypes());
