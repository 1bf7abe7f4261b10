import type { SearchCriteria } from '../../core/query.ts';
import { limits } from '../../limits.ts';
import { payloadSearch } from '../payload-search.ts';
import type { TraceLookups } from '../trace-lookups.ts';
import type { SearchDriver } from '../trace-search.ts';
import type { TeamCounter } from '../sequencer.ts';
import type { Row } from './connection.ts';
import { payloadsOf, seqsAmong, seqsBetween, seqsInRange, timesOf } from './search-statements.ts';
import type { QueryStatement } from './tally-statements.ts';

interface SearchReads extends TraceLookups {
  counter(teamId: string): Promise<TeamCounter>;
  ask(statement: QueryStatement): Promise<Row[]>;
}

/** The reads of a search about one team. */
export function searchDriver(
  { counter, lookUp, ask }: SearchReads,
  teamId: string,
  criteria: SearchCriteria,
): SearchDriver {
  const { names, matches } = payloadSearch(criteria);
  const { status } = criteria.filter;
  const isOfErrors = Array.isArray(status) && status.every((value) => value === 'error');
  const seqsOf = async (statement: QueryStatement): Promise<number[]> =>
    (await ask(statement)).map(({ seq }) => Number(seq));
  return {
    bounds: () => counter(teamId),
    lookUp: (field, value, beforeSeq) => lookUp(teamId, field, value, beforeSeq),
    inRange: (range, rowsMax) => seqsOf(seqsInRange(teamId, range, rowsMax)),
    rangeRows: isOfErrors ? limits.searchErrorRangeRowsMax : limits.searchRangeRowsMax,
    windowRows: isOfErrors ? limits.searchErrorWindowRows : limits.postgresSearchWindowRows,
    between: (fromSeq, toSeq) => seqsOf(seqsBetween(teamId, criteria, fromSeq, toSeq)),
    among: (seqs) => seqsOf(seqsAmong(teamId, criteria, seqs)),
    async withPayloads(seqs) {
      const found = new Set<number>();
      for (let left = seqs; left.length > 0;) {
        const rows = await ask(payloadsOf(teamId, names, left));
        // A reply is complete down to its last row; without one, none of the others has payloads.
        const lastSeq = Number(rows.at(-1)?.['seq'] ?? 0);
        const bySeq = new Map(rows.map((row) => [Number(row['seq']), row]));
        for (const seq of left.filter((own) => own >= lastSeq)) {
          if (matches(bySeq.get(seq) ?? {})) found.add(seq);
        }
        left = left.filter((own) => own < lastSeq);
      }
      return seqs.filter((seq) => found.has(seq));
    },
    async createdAtUs(seq) {
      const [row] = await ask(timesOf(teamId, [seq]));
      return Number(row?.['created_at_us']);
    },
    async timesOf(seqs) {
      const rows = await ask(timesOf(teamId, seqs));
      return rows.map(({ seq, us }) => ({ seq: Number(seq), us: Number(us) }));
    },
  };
}
