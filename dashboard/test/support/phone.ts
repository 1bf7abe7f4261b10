import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';

const width = 360;
/** A small phone. */
export const phone = { viewport: { width, height: 740 }, hasTouch: true, isMobile: true };

/** What sticks out to the right of the window, and is in no box that scrolls by itself. */
export async function fits(page: Page): Promise<void> {
  const [scrollWidth, windowWidth] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    innerWidth,
  ]);
  assert.ok(scrollWidth !== undefined);
  assert.ok(scrollWidth <= width, `the document is ${scrollWidth} px wide`);
  assert.equal(windowWidth, width, 'the browser did not have to zoom out');
}

/** What a finger cannot reach, though it scrolls there: out of the window, or under something else. Names what it looked at, too. */
async function press(page: Page): Promise<{ reached: number; unreached: string[] }> {
  return page.evaluate((widthPx) => {
    const controls = document.querySelectorAll('a[href], button:enabled, label:has(input)');
    // What is there for the keyboard alone is out of sight until it has the focus.
    const all = [...controls].filter((control) => control.textContent !== 'Skip to content');
    const isReached = (control: Element): boolean => {
      control.scrollIntoView({ block: 'center', behavior: 'instant' });
      const box = control.getBoundingClientRect();
      const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
      const isHit = hit !== null && (control.contains(hit) || hit.contains(control));
      return isHit && box.width > 0 && box.left >= -1 && box.right <= widthPx + 1;
    };
    const unreached = all.filter((control) => !isReached(control));
    scrollTo(0, 0);
    const nameOf = (control: Element): string =>
      control.getAttribute('aria-label') ?? control.textContent ?? '';
    return { reached: all.length - unreached.length, unreached: unreached.map(nameOf) };
  }, width);
}

export async function allCanBePressed(page: Page, atLeast: number): Promise<void> {
  const { reached, unreached } = await press(page);
  assert.deepEqual(unreached, []);
  assert.ok(reached >= atLeast, `${reached} controls`);
}
