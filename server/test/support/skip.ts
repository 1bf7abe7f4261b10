import type { TestContext } from 'node:test';

/** Skips a test that this machine cannot run, and says why. In CI it fails instead. */
export function skipUnlessCi(t: TestContext, reason: string): void {
  if (process.env['CI'] === 'true') throw new Error(`cannot run here: ${reason}`);
  t.skip(reason);
}
