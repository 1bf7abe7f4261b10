import { decode } from '../route/route.ts';

/** A link that signs in. Older versions printed links that carried a key; those sign in no more. */
export type SignInLink = { kind: 'code'; code: string } | { kind: 'key' };

/** Null if the fragment is not a sign-in link. */
export function linkOfFragment(fragment: string): SignInLink | null {
  if (fragment.startsWith('#key=')) return { kind: 'key' };
  const code = /^#code=(.*)$/s.exec(fragment)?.[1];
  return code === undefined ? null : { kind: 'code', code: cleanSecret(decode(code)) };
}

/** A key or code as it was meant: people also paste spaces, headers and whole links. */
export function cleanSecret(text: string): string {
  return text
    .trim()
    .replace(/^bearer\s+/i, '')
    .replace(/^.*#code=/s, '');
}

export function isCode(secret: string): boolean {
  return secret.startsWith('ttc_');
}
