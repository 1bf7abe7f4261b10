import type { Locator, Page } from 'playwright-core';
import { recordOne } from './seed.ts';
import type { Visit } from './stage.ts';

/** From now on the page measures how long it was blocked. */
export async function watchFrames(page: Page): Promise<void> {
  await page.evaluate(() => {
    const seen = { longestTaskMs: 0, longestGapMs: 0 };
    const count = (entries: PerformanceEntryList): void => {
      for (const { duration } of entries)
        seen.longestTaskMs = Math.max(seen.longestTaskMs, duration);
    };
    const observer = new PerformanceObserver((list) => count(list.getEntries()));
    observer.observe({ entryTypes: ['longtask'] });
    const read = (): Frames => {
      count(observer.takeRecords());
      return seen;
    };
    Object.assign(globalThis, { readFrames: read });
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
  /** The longest task, during which the page could not respond. */
  longestTaskMs: number;
  /** The longest time between two frames, for whatever reason. */
  longestGapMs: number;
}

export function seenFrames(page: Page): Promise<Frames> {
  return page.evaluate(async () => {
    // A task is recorded after it has ended, and two frames later all earlier tasks have.
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    return (globalThis as unknown as { readFrames(): Frames }).readFrames();
  });
}

/** Opens a trace from the list, as people do, so that only the trace itself is measured. Returns its input. */
export async function openWatched(
  { page, service, key, open, go }: Visit,
  fields: Parameters<typeof recordOne>[2],
): Promise<Locator> {
  const trace = await recordOne(service, key, fields);
  await open('#/traces');
  await page.getByRole('table').waitFor();
  await watchFrames(page);
  await go(`#/traces/${trace.id}`);
  const input = page.getByRole('region', { name: 'Input' });
  await input.waitFor();
  return input;
}
