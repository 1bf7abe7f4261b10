import { decode } from '../route/route.ts';

/** A link that signs in. Older versions printed links with a key in them, which no longer work. */
export type SignInLink = { kind: 'code'; code: string } | { kind: 'key' };

/** Null if the fragment is not a sign-in link. */
export function linkOfFragment(fragment: string): SignInLink | null {
  if (fragment.startsWith('#key=')) return { kind: 'key' };
  const code = /^#code=(.*)$/s.exec(fragment)?.[1];
  return code === undefined ? null : { kind: 'code', code: cleanSecret(decode(code)) };
}

/** The key or code in what the user pasted, which may include spaces, a header or a whole link. */
export function cleanSecret(text: string): string {
  return text
    .trim()
    .replace(/^bearer\s+/i, '')
    .replace(/^.*#code=/s, '');
}

export function isCode(secret: string): boolean {
  return secret.startsWith('ttc_');
}
