import type { ListedTrace, TraceFilter } from '../../../client/src/reading.ts';
import { tracesPerPage } from '../api/reads.ts';
import type { Reads } from '../api/reads.ts';

/** What a search has found so far. */
export interface Finding {
  traces: readonly ListedTrace[];
  /** Where to go on; null if everything was searched. */
  nextCursor: string | null;
  /** How far back it has looked, if the page is not full yet. */
  searchedTo: string | null;
}

/** Each request searches for a bounded time. A page that is not full yet goes on by itself this many times. */
const requestsMax = 20;

/** Reads one page of a filtered list. Progress is reported while a rare text is looked for. */
export async function findTraces(
  reads: Pick<Reads, 'find'>,
  filter: TraceFilter,
  cursor: string | null,
  signal: AbortSignal,
  onProgress: (finding: Finding) => void,
): Promise<Finding> {
  let finding: Finding = { traces: [], nextCursor: cursor, searchedTo: null };
  for (let request = 0; request < requestsMax; request += 1) {
    const limit = tracesPerPage - finding.traces.length;
    const part = { limit, cursor: finding.nextCursor };
    const found = await reads.find(filter, part, signal);
    finding = {
      traces: [...finding.traces, ...found.traces],
      nextCursor: found.next_cursor,
      searchedTo: found.searched_to,
    };
    if (finding.nextCursor === null || finding.traces.length >= tracesPerPage) break;
    onProgress(finding);
  }
  return finding;
}
