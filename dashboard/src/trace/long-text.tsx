import { useEffect, useRef, useState } from 'preact/hooks';
import { exactCount } from '../format/count.ts';
import { slicesOf } from './slices.ts';

interface LongTextProps {
  /** Begins the text anew each time. */
  pieces: () => Iterable<string>;
  /** Of the text as it was recorded. */
  chars: number;
  /** Where another one is shown, the text begins anew. */
  identity: unknown;
  /** What is shown at first. */
  firstChars?: number;
  class?: string;
}

const firstCharsUsual = 20_000;
const sliceChars = 40_000;

/**
 * Plain text of any length. Only its beginning is laid out at first; the rest is appended slice by slice, one a frame, so that the
 * page answers all the time. It goes into the document as text nodes and is never read as markup.
 */
export function LongText({
  pieces,
  chars,
  identity,
  firstChars = firstCharsUsual,
  class: className = '',
}: LongTextProps) {
  const holder = useRef<HTMLDivElement>(null);
  const rest = useRef<Iterator<string> | null>(null);
  const next = useRef<string | null>(null);
  const frame = useRef(0);
  const [stage, setStage] = useState<'whole' | 'cut' | 'growing'>('whole');

  const append = (): boolean => {
    if (next.current === null) return false;
    const slice = document.createElement('div');
    slice.className = 'slice';
    slice.textContent = next.current;
    holder.current?.append(slice);
    next.current = take(rest.current);
    return next.current !== null;
  };
  const grow = (): void => {
    setStage(append() ? 'growing' : 'whole');
    if (next.current !== null) frame.current = requestAnimationFrame(grow);
  };

  useEffect(() => {
    rest.current = slicesOf(pieces(), firstChars, sliceChars);
    next.current = take(rest.current);
    holder.current?.replaceChildren();
    setStage(append() ? 'cut' : 'whole');
    return () => cancelAnimationFrame(frame.current);
  }, [identity]);

  return (
    <>
      <div ref={holder} class={`long-text ${className}`} dir="auto" />
      {stage !== 'whole' && (
        <div class="long-text-more">
          <button type="button" class="button small" disabled={stage === 'growing'} onClick={grow}>
            {stage === 'growing' ? 'Showing all…' : 'Show all'}
          </button>
          <span class="muted small">{exactCount(chars)} characters in all</span>
        </div>
      )}
    </>
  );
}

function take(slices: Iterator<string> | null): string | null {
  const result = slices?.next();
  return result === undefined || result.done === true ? null : result.value;
}
