import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { dimensionSets } from '../../src/core/dimensions.ts';
import { limits } from '../../src/limits.ts';

/** Far too little for the sums of all traces, and twice as much as those of one slice need. */
const heapMb = 96;
const count = 20_000;

test('verify recounts a team with hundreds of thousands of rollups in bounded memory', () => {
  const program = new URL('recount-wide.ts', import.meta.url).pathname;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [`--max-old-space-size=${heapMb}`, program, String(count)],
    { timeout: 150_000, maxBuffer: 16 * 1024 * 1024 },
  );
  assert.equal(status, 0, stderr.toString().slice(0, 500));
  const findings = JSON.parse(stdout.toString()) as string[];
  // Nothing is stored, so every rollup is missing: the first ones are listed, the others counted.
  const groups = dimensionSets
    .filter(({ number }) => number > 0)
    .reduce((sum, { grains }) => sum + grains.length * count, 0);
  const totals = dimensionSets[0].grains.length;
  const unlisted = groups + totals - limits.findingsListMax;
  assert.equal(findings.at(-1), `${unlisted} more findings`);
});
