import assert from 'node:assert/strict';
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** Colours are all in which the themes differ. */
const rules = { light: null, dark: ['color-contrast'] };

/** What a person with a disability would stumble over, as axe finds it, with the place. */
export async function stumblingBlocks(page: Page, theme: keyof typeof rules): Promise<string[]> {
  // Typed in by the debugger, which the Content-Security-Policy does not stop, as it would a script tag.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe.source);
  return page.evaluate(async (values) => {
    const run = (globalThis as unknown as { axe: typeof axe }).axe.run;
    const { violations, passes } = await run(document, {
      resultTypes: ['violations'],
      ...(values !== null && { runOnly: { type: 'rule', values } }),
    });
    if (passes.length === 0) throw new Error('axe has looked at nothing');
    return violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`,
    );
  }, rules[theme]);
}

/** Nothing to stumble over in either theme, one after the other. */
export async function isClearInBothThemes(page: Page): Promise<void> {
  for (const theme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    await page.locator(`:root[data-theme=${theme}]`).waitFor();
    assert.deepEqual(await stumblingBlocks(page, theme), [], theme);
  }
}
