import { setTimeout as sleep } from 'node:timers/promises';

const everyMs = 40;

/** Tries until it passes. In the end it fails as the last try did. */
export async function eventually<T>(attempt: () => Promise<T> | T, withinMs = 10_000): Promise<T> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > endMs) throw error;
      await sleep(everyMs);
    }
  }
}
