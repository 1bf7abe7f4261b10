import type { SearchCriteria, TimeRange } from '../../core/query.ts';
import type { PayloadName } from '../../core/trace-fields.ts';
import { limits } from '../../limits.ts';
import { Parameters, criteriaOf, eventTime } from './tally-statements.ts';
import type { QueryStatement } from './tally-statements.ts';

/** Statements of searches for traces. There are many different texts, so they are not prepared. */
function statement(parameters: Parameters, text: string): QueryStatement {
  return { text, values: parameters.values, isPrepared: false };
}

/** The traces of a time range, in any order. */
export function seqsInRange(teamId: string, range: TimeRange, rowsMax: number): QueryStatement {
  const parameters = new Parameters(teamId);
  const [from, to] = [range.fromUs, range.toUs].map((us) => parameters.add(us, 'bigint'));
  const text = `
    select t.seq from traces t where t.team_id = $1 and ${eventTime} >= ${from} and ${eventTime} < ${to}
    limit ${parameters.add(rowsMax, 'bigint')}`;
  return statement(parameters, text);
}

/** The matching traces between two sequence numbers, newest first. */
export function seqsBetween(
  teamId: string,
  criteria: SearchCriteria,
  fromSeq: number,
  toSeq: number,
): QueryStatement {
  const parameters = new Parameters(teamId);
  const [first, last] = [toSeq, fromSeq].map((seq) => parameters.add(seq, 'bigint'));
  return matching(parameters, criteria, `t.seq between ${first} and ${last}`);
}

/** Those of the traces that match, newest first. */
export function seqsAmong(
  teamId: string,
  criteria: SearchCriteria,
  seqs: readonly number[],
): QueryStatement {
  const parameters = new Parameters(teamId);
  return matching(parameters, criteria, `t.seq = any(${parameters.add(seqs, 'bigint[]')})`);
}

function matching(parameters: Parameters, criteria: SearchCriteria, which: string): QueryStatement {
  // The sum is not in the index on times, so that PostgreSQL does not read the traces of a long range through it.
  const conditions = criteriaOf(parameters, criteria, `(${eventTime} + 0)`);
  const all = [which, ...conditions].map((condition) => `and ${condition}`).join(' ');
  return statement(
    parameters,
    `select t.seq from traces t where t.team_id = $1 ${all} order by t.seq desc`,
  );
}

/** The payloads of some traces, newest first, until they fill a chunk. Traces without payloads have no row. */
export function payloadsOf(
  teamId: string,
  names: readonly PayloadName[],
  seqs: readonly number[],
): QueryStatement {
  const parameters = new Parameters(teamId);
  const columns = ['seq', 'zstd_mask', ...names].join(', ');
  const lengths = names.map((name) => `coalesce(octet_length(${name}), 0)`).join(' + ');
  const text = `
    select ${columns} from (
      select ${columns}, sum(${lengths}) over (
        order by seq desc rows between unbounded preceding and 1 preceding) as bytes_before
      from trace_payloads where team_id = $1 and seq = any(${parameters.add(seqs, 'bigint[]')})) as p
    where coalesce(bytes_before, 0) < ${limits.moveBytesMax}
    order by seq desc`;
  return statement(parameters, text);
}

/** When some traces were stored, and when their calls happened. */
export function timesOf(teamId: string, seqs: readonly number[]): QueryStatement {
  const parameters = new Parameters(teamId);
  const text = `
    select t.seq, t.created_at_us, ${eventTime} as us from traces t
    where t.team_id = $1 and t.seq = any(${parameters.add(seqs, 'bigint[]')})`;
  return statement(parameters, text);
}
