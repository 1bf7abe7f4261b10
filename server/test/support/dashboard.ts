import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** For a server that serves the page: builds it unless that was done before. Must come before the server starts. */
export function needDashboard(): void {
  const script = fileURLToPath(new URL('../../../dashboard/build.ts', import.meta.url));
  const flags = ['--if-stale', '--or-fail'];
  const { status, stderr } = spawnSync(process.execPath, [script, ...flags], { timeout: 120_000 });
  assert.equal(status, 0, stderr.toString());
}
