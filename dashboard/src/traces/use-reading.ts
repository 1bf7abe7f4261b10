import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** So far from the top, rows that are put in above would push what one reads. */
const topPx = 8;

/**
 * Whether somebody reads or uses the list right now: scrolled down, the pointer over it, the keyboard in it, or text selected.
 * Nothing may move then.
 */
export function useReading(list: RefObject<HTMLElement | null>): boolean {
  const [isReading, setIsReading] = useState(scrollY > topPx);
  useEffect(() => {
    const { signal, stop } = listenable();
    let isPointedAt = false;
    const isInside = (node: Node | null): boolean =>
      node !== null && list.current?.contains(node) === true;
    const look = (): void => {
      const selection = getSelection();
      const isSelected = selection?.isCollapsed === false && isInside(selection.anchorNode);
      const isFocused = isInside(document.activeElement);
      setIsReading(scrollY > topPx || isPointedAt || isFocused || isSelected);
    };
    addEventListener('scroll', look, { signal, passive: true });
    document.addEventListener('selectionchange', look, { signal });
    document.addEventListener('focusin', look, { signal });
    // At this moment the focus is nowhere; a moment later it is where it goes.
    document.addEventListener('focusout', () => setTimeout(look), { signal });
    document.addEventListener(
      'pointerover',
      (event) => {
        // A finger that is lifted leaves no pointer behind.
        isPointedAt = event.pointerType !== 'touch' && isInside(event.target as Node);
        look();
      },
      { signal },
    );
    document.documentElement.addEventListener(
      'pointerleave',
      () => {
        isPointedAt = false;
        look();
      },
      { signal },
    );
    look();
    return stop;
  }, []);
  return isReading;
}

function listenable(): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, stop: () => controller.abort() };
}
