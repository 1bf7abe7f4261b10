import type { Locator } from 'playwright-core';

/** The exact value behind what is shown: what one reads when the pointer rests on it. */
export function exactText(place: Locator): Promise<string> {
  return place.evaluate((element) => {
    const titled = element.matches('[title]') ? element : element.querySelector('[title]');
    const title = titled?.getAttribute('title') ?? '';
    return (title === '' ? (element.textContent ?? '') : title).trim();
  });
}

/** `$1,234.50`, `840 ms` and `98.63%` as numbers; null where it is not known. */
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
