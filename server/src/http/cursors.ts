import { createHmac, timingSafeEqual } from 'node:crypto';
import type { SentParameters } from '../core/question.ts';

/** Where the next page of a filtered list begins. */
export interface Place {
  seq: number;
  /** When that call happened, in lists by that time. */
  us: number | null;
  /** The range of the first page, so that `last=24h` means the same on every page. */
  fromUs: number | null;
  toUs: number | null;
}

/** A cursor is signed, so that it is accepted only for the list that it came from. */
export interface Cursors {
  seal(teamId: string, sent: SentParameters, place: Place): string;
  /** Null if the cursor is not of this list. */
  open(teamId: string, sent: SentParameters, cursor: string): Place | null;
}

/** Parameters that may change from page to page. */
const free = new Set(['cursor', 'limit', 'omit', 'preview_chars']);

export const cursorPattern = '^[A-Za-z0-9_-]{1,200}\\.[A-Za-z0-9_-]{43}$';

export function openCursors(secret: Uint8Array): Cursors {
  const signatureOf = (teamId: string, sent: SentParameters, text: string): string => {
    const filters = Object.entries(sent).filter(([name]) => !free.has(name));
    const list = JSON.stringify(filters.sort(([a], [b]) => (a < b ? -1 : 1)));
    const signed = ['cursor', teamId, list, text].join('\n');
    return createHmac('sha256', secret).update(signed).digest('base64url');
  };
  return {
    seal(teamId, sent, { seq, us, fromUs, toUs }) {
      const text = Buffer.from(JSON.stringify([seq, us, fromUs, toUs])).toString('base64url');
      return `${text}.${signatureOf(teamId, sent, text)}`;
    },
    open(teamId, sent, cursor) {
      const [text = '', signature = ''] = cursor.split('.');
      const [given, own] = [signature, signatureOf(teamId, sent, text)].map((s) => Buffer.from(s));
      if (!given || !own || given.length !== own.length || !timingSafeEqual(given, own))
        return null;
      const [seq, us, fromUs, toUs] = JSON.parse(Buffer.from(text, 'base64url').toString()) as [
        number,
        ...(number | null)[],
      ];
      return { seq, us: us ?? null, fromUs: fromUs ?? null, toUs: toUs ?? null };
    },
  };
}
