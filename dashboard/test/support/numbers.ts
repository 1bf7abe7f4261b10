import type { Locator } from 'playwright-core';

/** The exact value: the tooltip if there is one, otherwise the text. */
export function exactText(place: Locator): Promise<string> {
  return place.evaluate((element) => {
    const titled = element.matches('[title]') ? element : element.querySelector('[title]');
    const title = titled?.getAttribute('title') ?? '';
    return (title === '' ? (element.textContent ?? '') : title).trim();
  });
}

/** `$1,234.50`, `840 ms` and `98.63%` as numbers; null if it is not known. */
export async function exactNumber(place: Locator): Promise<number | null> {
  const text = await exactText(place);
  if (text.includes('not known')) return null;
  const digits = text
    .replace(/^\$/, '')
    .replace(/ ?(ms|%)$/, '')
    .replaceAll(',', '');
  if (!/^\d+(\.\d+)?$/.test(digits)) throw new Error(`"${text}" is no exact number`);
  return Number(digits);
}
