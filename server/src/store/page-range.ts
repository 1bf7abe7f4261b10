import { payloadChars } from '../core/trace.ts';
import type { Trace } from '../core/trace.ts';
import { Failure } from '../errors.ts';
import type { TeamCounter } from './sequencer.ts';
import type { ListRequest, PageRequest } from './trace-reader.ts';

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

/** How much of a page's chunk a trace takes: the length of its texts, or of a preview the stored bytes that it is cut from. */
export function chunkWork(
  row: Readonly<Record<string, unknown>>,
  trace: Trace,
  { previewChars = null }: ListRequest,
): number {
  return previewChars === null ? payloadChars(trace) : Number(row['stored_bytes']);
}
