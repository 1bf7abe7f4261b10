import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** From this distance on, new rows at the top would move the rows in view. */
const topPx = 8;

/**
 * Whether the list is in use: scrolled down, under the pointer, with the focus in it, or with text selected. It must not move then.
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
    // During focusout no element has the focus; right after it the new one has.
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
