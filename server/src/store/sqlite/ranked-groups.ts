import { onlyMeasures } from '../../core/analytics.ts';
import type { Calendar } from '../../core/calendar.ts';
import type { MeasuresSum } from '../../core/measures-sum.ts';
import type { Tally, TallyQuery } from '../../core/query.ts';
import { planQuery } from '../../core/query-plan.ts';
import { percentOf, recordFields } from '../../core/record-fields.ts';
import type { RecordField } from '../../core/record-fields.ts';
import { rankedBy, restOf } from '../../core/report.ts';
import type { RankOrder, Report } from '../../core/report.ts';
import { limits } from '../../limits.ts';
import type { ListQuestion } from './group-list.ts';
import type { TallyReader } from './tally-reader.ts';
import type { TeamSnapshot } from './team-snapshot.ts';

/**
 * Ranks the names of a list, in the transaction of the snapshot: first without latency histograms, unless they decide, then those of the
 * first names alone. Null if there are too many names.
 */
export function rankGroups(
  reader: TallyReader,
  team: TeamSnapshot,
  { query, plan, field }: ListQuestion,
  calendar: Calendar,
  order: RankOrder,
  groupsMax: number,
): Report | null {
  const percent = percentOf(order.by);
  const sumsOnly = percent === null;
  const namesMax = sumsOnly ? limits.tallyRowsMax : limits.rankedHistogramsMax;
  const sheet = reader.sum(team, plan, { ...query, sumsOnly }, calendar, namesMax);
  const totals = totalsOf(reader, team, query, calendar);
  if (!sheet || !totals) return null;
  const { valueOf }: RecordField = recordFields[order.by];
  const ranked = rankedBy(order, sheet.sums(), ({ sum }) =>
    percent === null ? valueOf(sum.measures()) : sum.percentile(percent),
  );
  const first = ranked.slice(0, groupsMax);
  const rows =
    sumsOnly && !query.sumsOnly
      ? withLatencies(reader, team, { query, plan, field }, calendar, first)
      : first.map(({ group, sum }) => ({ group, startUs: null, measures: sum.measures() }));
  const isAll = ranked.length === first.length;
  const other = isAll ? [] : [{ group: [], startUs: null, measures: restOf(totals, rows) }];
  return { rows, other, totals, groups: rows.map(({ group }) => group) };
}

type RankedSum = { group: Tally['group']; sum: MeasuresSum };

/** In the same order. */
function withLatencies(
  reader: TallyReader,
  team: TeamSnapshot,
  { query, plan, field }: ListQuestion,
  calendar: Calendar,
  first: readonly RankedSum[],
): Tally[] {
  const names = first.map(({ group: [name = null] }) => name);
  const only = { ...query, filter: { ...query.filter, [field]: names } };
  const sheet = reader.sum(team, plan, only, calendar, first.length);
  const places = new Map(names.map((name, place) => [name, place]));
  const placeOf = ({ group: [name = null] }: Tally): number => places.get(name) ?? Infinity;
  return (sheet?.tallies() ?? []).sort((a, b) => placeOf(a) - placeOf(b));
}

function totalsOf(reader: TallyReader, team: TeamSnapshot, query: TallyQuery, calendar: Calendar) {
  const together = { ...query, groupBy: [] };
  const plan = planQuery(together, calendar);
  if (plan.kind === 'traces') return null;
  const sheet = reader.sum(team, plan, together, calendar, 1);
  return sheet && onlyMeasures(sheet.tallies());
}
