import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';

const everyMs = 40;

/**
 * Resolves when the page has drawn what it had to draw, and every request that it started before was seen: the browser reports
 * requests in their order.
 */
export async function settled(page: Page, home: string): Promise<void> {
  const url = `${home}healthz`;
  // The response has a deadline, which a script in the page has not.
  const answered = page.waitForResponse(url);
  await page.evaluate((address) => {
    requestAnimationFrame(() => requestAnimationFrame(() => void fetch(address)));
  }, url);
  await answered;
}

/** Repeats the attempt until it passes. After the deadline, which only prevents a hang, it fails with the error of the last attempt. */
export async function eventually<T>(attempt: () => Promise<T> | T, withinMs = 120_000): Promise<T> {
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
