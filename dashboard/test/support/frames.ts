import type { Page } from 'playwright-core';

/** From now on the page tells how long it was deaf. */
export async function watchFrames(page: Page): Promise<void> {
  await page.evaluate(() => {
    const seen = { longestTaskMs: 0, longestGapMs: 0 };
    Object.assign(globalThis, { seenFrames: seen });
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries())
        seen.longestTaskMs = Math.max(seen.longestTaskMs, duration);
    }).observe({ entryTypes: ['longtask'] });
    let lastMs = performance.now();
    const tick = (): void => {
      const nowMs = performance.now();
      seen.longestGapMs = Math.max(seen.longestGapMs, nowMs - lastMs);
      lastMs = nowMs;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
}

export interface Frames {
  /** The longest piece of work in which the page could not answer. */
  longestTaskMs: number;
  /** The longest time between two frames, whoever was to blame for it. */
  longestGapMs: number;
}

export function seenFrames(page: Page): Promise<Frames> {
  return page.evaluate(async () => {
    // What is running now is told only after it has ended.
    await new Promise((resolve) => setTimeout(resolve, 100));
    return (globalThis as unknown as { seenFrames: Frames }).seenFrames;
  });
}
