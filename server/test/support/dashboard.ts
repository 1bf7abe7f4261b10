import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const dashboard = new URL('../../../dashboard/', import.meta.url);

/** For tests of a server that serves the page: builds it unless that was done before. */
export function needDashboard(): void {
  const script = fileURLToPath(new URL('build.ts', dashboard));
  const { stderr } = spawnSync(process.execPath, [script, '--if-stale'], { timeout: 120_000 });
  assert.ok(existsSync(new URL('dist/index.html', dashboard)), stderr.toString());
}
