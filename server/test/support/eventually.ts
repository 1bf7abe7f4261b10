import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** What `look` returns as long as there is nothing to see yet. */
type NotYet = null | undefined | false;

/**
 * Calls `look` until it returns something, and returns that. Fails when the time is over, even if `look` itself never
 * returns; the message is `what` was waited for. A function can add what was seen instead.
 */
export async function eventually<T>(
  what: string | (() => string),
  withinMs: number,
  look: () => T | NotYet | Promise<T | NotYet>,
  everyMs = 50,
): Promise<T> {
  const over = new AbortController();
  const tooLate = sleep(withinMs, 'too late' as const, { signal: over.signal });
  tooLate.catch(() => {});
  const startMs = performance.now();
  try {
    for (;;) {
      const seen = await Promise.race([wrap(look), tooLate]);
      if (seen === 'too late') break;
      const { value } = seen;
      if (value !== null && value !== undefined && value !== false) return value;
      if (performance.now() - startMs >= withinMs) break;
      await sleep(everyMs);
    }
  } finally {
    over.abort();
  }
  assert.fail(`${typeof what === 'string' ? what : what()}: not within ${withinMs} ms`);
}

async function wrap<T>(look: () => T | Promise<T>): Promise<{ value: T }> {
  return { value: await look() };
}
