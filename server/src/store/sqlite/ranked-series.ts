import type { Calendar } from '../../core/calendar.ts';
import { MeasuresSum } from '../../core/measures-sum.ts';
import type { QueryField, Tally, TallyQuery } from '../../core/query.ts';
import { planQuery } from '../../core/query-plan.ts';
import type { RankOrder, Report } from '../../core/report.ts';
import type { RankedSum } from '../../core/tally-sheet.ts';
import { Failure } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { rankedSums, restWithout, rowOf } from './ranked-groups.ts';
import type { TallyReader } from './tally-reader.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

/** Whether the answer is one line of a chart, or one for each value of a field. */
export function isSeries({ interval, groupBy }: TallyQuery): boolean {
  return interval !== null && groupBy.length <= 1;
}

/**
 * The report on a series, in the transaction of the snapshot: first it is found out which groups are wanted, then only their intervals are
 * read, and those of all calls. It has percentiles instead of histograms. Null if there are very many groups, or if traces have to be read.
 */
export function rankSeries(
  reader: TallyReader,
  team: TeamSnapshot,
  query: TallyQuery,
  calendar: Calendar,
  order: RankOrder,
  groupsMax: number,
): Report | null {
  const read = (part: TallyQuery): RankedSum[] | null => {
    const plan = planQuery(part, calendar);
    if (plan.kind === 'traces') return null;
    const sheet = reader.sum(team, plan, part, calendar, limits.tallyRowsMax);
    if (!sheet) throw new Failure('question_too_wide');
    return [...sheet.sums()].sort((a, b) => startUsOf(a) - startUsOf(b));
  };
  const together = read({ ...query, groupBy: [] });
  if (!together) return null;
  const total = new MeasuresSum();
  for (const { sum } of together) total.addWhole(sum);
  const totals = total.shownMeasures();
  const [field] = query.groupBy;
  if (field === undefined) {
    const groups = together.length > 0 ? [[]] : [];
    return { rows: together.map(rowOf), other: [], totals, groups };
  }

  const ofGroups = { ...query, interval: null };
  const plan = planQuery(ofGroups, calendar);
  if (plan.kind === 'traces') return null;
  const ranked = rankedSums(reader, team, ofGroups, plan, calendar, order);
  if (!ranked) return null;
  const groups = ranked.slice(0, groupsMax).map(({ group }) => group);
  const wanted = read(ofOnly(query, field, groups));
  if (!wanted) return null;
  const ranks = new Map(groups.map(([name = null], rank) => [name, rank]));
  const rankOf = ({ group: [name = null] }: RankedSum): number => ranks.get(name) ?? Infinity;
  wanted.sort((a, b) => startUsOf(a) - startUsOf(b) || rankOf(a) - rankOf(b));
  const isAll = ranked.length === groups.length;
  const rows = wanted.map(rowOf);
  // A reply with so many rows is refused, so the rest need not be computed.
  if (rows.length > limits.reportRowsMax) return { rows, other: [], totals, groups };
  const other = isAll ? [] : restByStart(together, wanted, rows);
  return { rows, other, totals, groups };
}

function ofOnly(query: TallyQuery, field: QueryField, groups: Report['groups']): TallyQuery {
  const names = groups.map(([name = null]) => name);
  return { ...query, filter: { ...query.filter, [field]: names } };
}

/** What is left of each interval. */
function restByStart(
  together: readonly RankedSum[],
  wanted: readonly RankedSum[],
  rows: readonly Tally[],
): Tally[] {
  const sumsOf = Map.groupBy(wanted, startUsOf);
  const rowsOf = Map.groupBy(rows, startUsOf);
  return together
    .map((whole): Tally => {
      const start = startUsOf(whole);
      const measures = restWithout(whole.sum, sumsOf.get(start) ?? [], rowsOf.get(start) ?? []);
      return { group: [], startUs: whole.startUs, measures };
    })
    .filter(({ measures }) => measures.calls > 0);
}

function startUsOf({ startUs }: Pick<Tally, 'startUs'>): number {
  return startUs ?? 0;
}
