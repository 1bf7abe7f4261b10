import type { Locator, Page } from 'playwright-core';

/** The large number with this name, and its difference to the period before. */
export function figure(page: Page, name: string): Locator {
  return page
    .getByRole('region', { name: 'Totals' })
    .locator('dl', { has: page.getByText(name, { exact: true }) });
}

/** The card of a chart: its name, what is looked at, the value, and the legend. */
export function card(page: Page, name: string): Locator {
  return page.locator('.chart-card', {
    has: page.getByRole('heading', { name, level: 3, exact: true }),
  });
}

/** The number beside the name of a chart: of the bar under the pointer, or of the whole range. */
export function chartValue(page: Page, name: string): Locator {
  return card(page, name).locator('.chart-value > span').nth(1);
}
