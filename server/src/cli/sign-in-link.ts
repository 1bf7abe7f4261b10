import { limits } from '../limits.ts';

/** Opens the dashboard signed in. The code is in the fragment, which browsers send to no server. */
export function signInLink(url: string, code: string): string {
  return `${url}/#code=${code}`;
}

export const codeLifeInWords = `works once, within ${limits.signInCodeLifeMs / 60_000} minutes`;
