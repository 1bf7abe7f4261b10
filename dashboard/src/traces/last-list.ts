import type { TracePage } from '../../../client/src/reading.ts';
import type { Finding } from './finding.ts';

/** The list as it was last shown, with its address, for a user who returns to it. */
export type LastList =
  | { kind: 'paged'; fragment: string; list: TracePage }
  | { kind: 'found'; fragment: string; list: Finding };
