import { decode } from '../route/route.ts';

/** The key of a sign-in link `#key=tt_…`; null where the fragment is none. */
export function keyOfFragment(fragment: string): string | null {
  const text = /^#key=(.*)$/s.exec(fragment)?.[1];
  return text === undefined ? null : cleanKey(decode(text));
}

/** A key as it was meant: people copy spaces, and headers. */
export function cleanKey(text: string): string {
  return text.trim().replace(/^bearer\s+/i, '');
}
