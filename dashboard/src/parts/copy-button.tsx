import { useEffect, useState } from 'preact/hooks';
import { CheckIcon, CopyIcon } from './icons.tsx';

interface CopyButtonProps {
  /** Returns what to copy; called on click. */
  text: () => string;
  /** The accessible name, such as `Copy input`. */
  label: string;
  /** The visible text; only the icon is shown without it. */
  children?: string;
}

type Outcome = 'copied' | 'failed';

export function CopyButton({ text, label, children }: CopyButtonProps) {
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  useEffect(() => {
    if (outcome === null) return undefined;
    const timer = setTimeout(() => setOutcome(null), 2_000);
    return () => clearTimeout(timer);
  }, [outcome]);
  const onClick = (): void => {
    void copy(text()).then((done) => setOutcome(done ? 'copied' : 'failed'));
  };
  const words = { copied: 'Copied', failed: 'Copy failed' };
  return (
    <>
      <button
        type="button"
        class={children === undefined ? 'button icon quiet' : 'button small'}
        aria-label={label}
        title={label}
        onClick={onClick}
      >
        {outcome === 'copied' ? <CheckIcon /> : <CopyIcon />}
        {children !== undefined && <span>{outcome === null ? children : words[outcome]}</span>}
      </button>
      <span class="visually-hidden" role="status">
        {outcome === null ? '' : words[outcome]}
      </span>
    </>
  );
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page without TLS has no clipboard, but may still copy a selection.
    return copySelection(text);
  }
}

function copySelection(text: string): boolean {
  const holder = document.createElement('textarea');
  const focused = document.activeElement;
  holder.value = text;
  holder.className = 'visually-hidden';
  document.body.append(holder);
  holder.select();
  try {
    return document.execCommand('copy');
  } catch {
    return false;
  } finally {
    holder.remove();
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  }
}
