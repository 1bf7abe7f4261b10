import { Failure } from '../errors.ts';
import type { TeamCounter } from './sequencer.ts';
import type { PageRequest } from './trace-reader.ts';

/** The sequence numbers of a page, newest first: from `fromSeq` down to `toSeq`. On an empty page `toSeq` is larger than `fromSeq`. */
export interface PageRange {
  total: number;
  fromSeq: number;
  toSeq: number;
}

/** The sequence has no gaps, so a page is a range of numbers, and the last one is as fast as the first. */
export function pageRange(
  { firstSeq, lastSeq }: TeamCounter,
  { page, limit }: PageRequest,
): PageRange {
  const fromSeq = lastSeq - (page - 1) * limit;
  const toSeq = Math.max(firstSeq, fromSeq - limit + 1);
  return { total: lastSeq - firstSeq + 1, fromSeq, toSeq };
}

export function tracesMissing(where: string): Failure {
  return new Failure('store_unavailable', { cause: `traces ${where} are missing` });
}
