import { limits } from '../limits.ts';

/** Signs in to the dashboard. The code is in the fragment, which browsers send to no server. */
export function signInLink(url: string, code: string): string {
  return `${url}/#code=${code}`;
}

export const codeLifeInWords = `works once and expires after ${limits.signInCodeLifeMs / 60_000} minutes`;
