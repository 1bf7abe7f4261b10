import type { Calendar } from '../../core/calendar.ts';
import type { Measures } from '../../core/measures.ts';
import { MeasuresSum } from '../../core/measures-sum.ts';
import type { Tally, TallyQuery } from '../../core/query.ts';
import { planQuery } from '../../core/query-plan.ts';
import { percentOf, recordFields } from '../../core/record-fields.ts';
import type { RecordField } from '../../core/record-fields.ts';
import { rankedBy, restOf } from '../../core/report.ts';
import type { RankOrder, Report } from '../../core/report.ts';
import type { RankedSum } from '../../core/tally-sheet.ts';
import { limits } from '../../limits.ts';
import type { ListQuestion } from './group-list.ts';
import type { RollupPlan } from './rollup-values.ts';
import type { TallyReader } from './tally-reader.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

/**
 * Ranks the names of a list, in the transaction of the snapshot: first without latency histograms, unless they decide, then those of the
 * first names alone. The report has percentiles instead of histograms. Null if there are too many names.
 */
export function rankGroups(
  reader: TallyReader,
  team: TeamSnapshot,
  { query, plan, field }: ListQuestion,
  calendar: Calendar,
  order: RankOrder,
  groupsMax: number,
): Report | null {
  const ranked = rankedSums(reader, team, query, plan, calendar, order);
  const totals = totalsOf(reader, team, query, calendar);
  if (!ranked || !totals) return null;
  const sumsOnly = percentOf(order.by) === null;
  const names = ranked.slice(0, groupsMax);
  const question = { query, plan, field };
  const first =
    sumsOnly && !query.sumsOnly ? withLatencies(reader, team, question, calendar, names) : names;
  const rows = first.map(rowOf);
  const whole = totals.shownMeasures();
  const isAll = ranked.length === names.length;
  const other = isAll
    ? []
    : [{ group: [], startUs: null, measures: restWithout(totals, first, rows) }];
  return { rows, other, totals: whole, groups: rows.map(({ group }) => group) };
}

/** The sum of each group of a query without intervals, best first; without latencies unless they decide. Null if there are too many. */
export function rankedSums(
  reader: TallyReader,
  team: TeamSnapshot,
  query: TallyQuery,
  plan: RollupPlan,
  calendar: Calendar,
  order: RankOrder,
): RankedSum[] | null {
  const percent = percentOf(order.by);
  const sumsOnly = percent === null;
  const namesMax = sumsOnly ? limits.tallyRowsMax : limits.rankedHistogramsMax;
  const sheet = reader.sum(team, plan, { ...query, sumsOnly }, calendar, namesMax);
  if (!sheet) return null;
  const { valueOf }: RecordField = recordFields[order.by];
  return rankedBy(order, sheet.sums(), ({ sum }) =>
    percent === null ? valueOf(sum.measures()) : sum.percentile(percent),
  );
}

export function rowOf({ group, startUs, sum }: RankedSum): Tally {
  return { group, startUs, measures: sum.shownMeasures() };
}

/** What is left of the whole without some groups and their rows. Their latencies are taken away from it, so this can be done once. */
export function restWithout(
  whole: MeasuresSum,
  first: readonly RankedSum[],
  rows: readonly Tally[],
): Measures {
  const rest = restOf(whole.shownMeasures(), rows);
  for (const { sum } of first) whole.subtractLatencies(sum);
  const { percentiles } = whole.shownMeasures();
  return percentiles ? { ...rest, percentiles } : rest;
}

/** In the same order. */
function withLatencies(
  reader: TallyReader,
  team: TeamSnapshot,
  { query, plan, field }: ListQuestion,
  calendar: Calendar,
  first: readonly RankedSum[],
): RankedSum[] {
  const names = first.map(({ group: [name = null] }) => name);
  const only = { ...query, filter: { ...query.filter, [field]: names } };
  const sheet = reader.sum(team, plan, only, calendar, first.length);
  const places = new Map(names.map((name, place) => [name, place]));
  const placeOf = ({ group: [name = null] }: RankedSum): number => places.get(name) ?? Infinity;
  return [...(sheet?.sums() ?? [])].sort((a, b) => placeOf(a) - placeOf(b));
}

function totalsOf(
  reader: TallyReader,
  team: TeamSnapshot,
  query: TallyQuery,
  calendar: Calendar,
): MeasuresSum | null {
  const together = { ...query, groupBy: [] };
  const plan = planQuery(together, calendar);
  if (plan.kind === 'traces') return null;
  const sheet = reader.sum(team, plan, together, calendar, 1);
  if (!sheet) return null;
  const [only] = sheet.sums();
  return only?.sum ?? new MeasuresSum();
}
