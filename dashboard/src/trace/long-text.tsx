import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { exactCount } from '../format/count.ts';
import { slicesOf } from './slices.ts';

interface LongTextProps {
  /** Starts the text from the beginning at each call. */
  pieces: () => Iterable<string>;
  /** Of the text as it was recorded; null if that is not known. */
  chars: number | null;
  /** When it changes, the text is shown from the beginning again. */
  identity: unknown;
  /** What is shown at first. */
  firstChars?: number;
  /** Given for formatted text, which may be far longer than what was recorded: its length is bounded, and this shows the raw text. */
  onRaw?: (() => void) | undefined;
  class?: string;
}

const firstCharsUsual = 20_000;
const sliceChars = 40_000;
const formattedCharsMax = 6_000_000;

/**
 * Plain text of any length. Only its beginning is laid out at first; the rest is appended slice by slice, a few per frame, so that
 * the page stays responsive. It is added to the document as text nodes and is never parsed as markup.
 */
export function LongText({
  pieces,
  chars,
  identity,
  firstChars = firstCharsUsual,
  onRaw,
  class: className = '',
}: LongTextProps) {
  const holder = useRef<HTMLDivElement>(null);
  const rest = useRef<Iterator<string> | null>(null);
  const next = useRef<string | null>(null);
  const frame = useRef(0);
  const shownChars = useRef(0);
  const [stage, setStage] = useState<'whole' | 'cut' | 'growing' | 'full'>('whole');

  /** Appends the next slice, and more if they fit; true if more slices follow. */
  const append = (charsMax: number): boolean => {
    let left = charsMax;
    do {
      if (next.current === null) return false;
      const slice = document.createElement('div');
      slice.className = 'slice';
      slice.textContent = next.current;
      holder.current?.append(slice);
      shownChars.current += next.current.length;
      left -= next.current.length;
      next.current = take(rest.current);
    } while (next.current !== null && next.current.length <= left);
    return next.current !== null;
  };
  const grow = (): void => {
    const hasMore = append(sliceChars);
    const isFull = onRaw !== undefined && shownChars.current >= formattedCharsMax;
    setStage(!hasMore ? 'whole' : isFull ? 'full' : 'growing');
    if (hasMore && !isFull) frame.current = requestAnimationFrame(grow);
  };

  // Before the browser draws again: laying out the old text once more may take seconds if it is long.
  useLayoutEffect(() => {
    rest.current = slicesOf(pieces(), firstChars, sliceChars);
    next.current = take(rest.current);
    shownChars.current = 0;
    holder.current?.replaceChildren();
    setStage(append(firstChars) ? 'cut' : 'whole');
    return () => cancelAnimationFrame(frame.current);
  }, [identity]);

  return (
    <>
      <div ref={holder} class={`long-text ${className}`} dir="auto" />
      {stage === 'full' && (
        <div class="long-text-more">
          <button type="button" class="button small" onClick={onRaw}>
            Show raw
          </button>
          <span class="muted small">Too long to format in full</span>
        </div>
      )}
      {(stage === 'cut' || stage === 'growing') && (
        <div class="long-text-more">
          <button type="button" class="button small" disabled={stage === 'growing'} onClick={grow}>
            {stage === 'growing' ? 'Showing all…' : 'Show all'}
          </button>
          {chars !== null && (
            <span class="muted small">{exactCount(chars)} characters in total</span>
          )}
        </div>
      )}
    </>
  );
}

function take(slices: Iterator<string> | null): string | null {
  const result = slices?.next();
  return result === undefined || result.done === true ? null : result.value;
}
