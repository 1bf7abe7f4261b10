import type { Page } from 'playwright-core';

/** Fails if a text has become more than text: an element, an attribute or a script. */
export function isUntouched(page: Page): Promise<void> {
  return page.evaluate(() => {
    if ('__pwned' in window) throw new Error('a text was run');
    const strangers = document.querySelectorAll(
      'iframe, object, embed, base, style, form[action], meta[http-equiv], marquee, template, math',
    );
    if (strangers.length > 0) throw new Error(`a text became ${strangers[0]?.outerHTML}`);
    const own = [...document.scripts].every(({ src }) => src.startsWith(`${location.origin}/`));
    if (!own) throw new Error('a text became a script');
    for (const element of document.querySelectorAll('*')) {
      for (const { name, value } of element.attributes) {
        const isBad = name.startsWith('on') || (name === 'href' && !/^(#|http|\.)/.test(value));
        if (isBad) throw new Error(`a text became an attribute: ${element.outerHTML}`);
      }
    }
  });
}
