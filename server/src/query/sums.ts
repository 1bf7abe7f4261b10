import type { Calendar } from '../core/calendar.ts';
import { LatencyCounts } from '../core/latency-counts.ts';
import { percents } from '../core/latency-histogram.ts';
import { addMeasures, noMeasures, subtractMeasures } from '../core/measures.ts';
import type { Measures } from '../core/measures.ts';
import type { Tally, TallyQuery } from '../core/query.ts';
import { rankedTallies } from '../core/report.ts';
import type { RankOrder, Report } from '../core/report.ts';
import { startOfBucket } from '../core/rollup.ts';
import { byCalls, startOf } from '../core/tally-sheet.ts';
import { summedNames } from '../core/trace-fields.ts';
import { minuteGrain, sumNames } from './sums-sql.ts';

/** The sum of a group, in one interval if the query has intervals, with its latencies if they are wanted. */
export interface Sum extends Tally {
  counts: LatencyCounts | null;
}

/** Numbers come as BigInt from SQLite and as text from PostgreSQL. */
type Value = string | number | bigint | null | object;
export type SumRow = readonly Value[];

/** Gathers the rows of a statement of `SumsSql`. Rows of different grains may belong to one interval. */
export class SumList {
  readonly #query: TallyQuery;
  readonly #calendar: Calendar;
  readonly #sums = new Map<string, Sum>();
  readonly #starts = new Map<string, number>();

  constructor(query: TallyQuery, calendar: Calendar) {
    this.#query = query;
    this.#calendar = calendar;
  }

  add(row: SumRow): Sum {
    const { startUs, group } = this.#placeOf(row);
    const sumsAt = 2 + group.length;
    const measures = measuresOf(row.slice(sumsAt, sumsAt + sumNames.length));
    const name = nameOf(startUs, group);
    const known = this.#sums.get(name);
    if (known) {
      addMeasures(known.measures, measures);
      return known;
    }
    const sum: Sum = { group, startUs, measures, counts: null };
    this.#sums.set(name, sum);
    return sum;
  }

  /** Where latencies of this bucket and group are counted; null if there is no such sum. */
  countsOf(row: SumRow): LatencyCounts | null {
    const { startUs, group } = this.#placeOf(row);
    const sum = this.#sums.get(nameOf(startUs, group));
    return sum ? (sum.counts ??= new LatencyCounts()) : null;
  }

  /** Those with calls, in the order of the rows if no row was added to another. */
  all(): Sum[] {
    return [...this.#sums.values()].filter(({ measures }) => measures.calls > 0);
  }

  #placeOf(row: SumRow): Pick<Tally, 'startUs' | 'group'> {
    const group = row.slice(2, 2 + this.#query.groupBy.length) as (string | null)[];
    return { startUs: this.#startOf(Number(row[0]), Number(row[1])), group };
  }

  #startOf(grain: number, bucket: number): number | null {
    const { interval } = this.#query;
    if (interval === null) return null;
    return this.#starts.getOrInsertComputed(`${grain} ${bucket}`, () => {
      const us =
        grain === minuteGrain ? bucket * usPerMinute : startOfBucket(grain, bucket, this.#calendar);
      return startOf(interval, us, this.#calendar);
    });
  }
}

const usPerMinute = 60_000_000;
const picosPerMicro = 1_000_000n;

/** From the values in the order of `sumNames`, without the latencies. */
export function measuresOf(values: SumRow): Measures {
  const [errors, calls, uncosted, count, latencySum, micros, picos, ...summed] = values as bigint[];
  return {
    calls: Number(calls),
    errors: Number(errors),
    uncosted_calls: Number(uncosted),
    latency_count: Number(count),
    latency_sum: BigInt(latencySum ?? 0),
    cost_picos: BigInt(micros ?? 0) * picosPerMicro + BigInt(picos ?? 0),
    ...(Object.fromEntries(summedNames.map((name, i) => [name, BigInt(summed[i] ?? 0)])) as Record<
      (typeof summedNames)[number],
      bigint
    >),
    latencies: new Map(),
  };
}

/** With their histograms, by calls descending, then by group, then by time. */
export function talliesOf(sums: readonly Sum[], { interval }: TallyQuery): Tally[] {
  const tallies = sums.map(({ counts, ...tally }) => {
    counts?.addTo(tally.measures.latencies);
    return tally;
  });
  return interval === null ? tallies : tallies.sort(byCalls);
}

/**
 * The first groups, the sums of the others, and the totals, with percentiles instead of histograms. `sums` has at least the first groups,
 * best first if there are no intervals; `together` has the sums of all groups together.
 */
export function reportOfSums(
  sums: readonly Sum[],
  together: readonly Sum[],
  query: TallyQuery,
  order: RankOrder,
  groupsMax: number,
  isRanked: boolean,
): Report {
  const isInOrder = isRanked && query.interval === null;
  const groups = isInOrder
    ? sums.map(({ group }) => group)
    : rankedTallies(order, groupTotals(sums).map(shown))
        .slice(0, groupsMax)
        .map(({ group }) => group);
  const rows = isInOrder ? sums : only(sums, groups, query);
  const whole = [...together].sort(byStart);
  const other = query.groupBy.length === 0 ? [] : restOf(whole, rows);
  return {
    rows: rows.map(shown),
    other: other.map(shown),
    totals: shown(totalOf(whole)).measures,
    groups,
  };
}

/** Labels cannot contain control characters. */
function nameOf(startUs: number | null, group: Tally['group']): string {
  if (startUs === null && group.length === 1) return group[0] ?? '\u0001';
  return [startUs ?? '', ...group.map((value) => value ?? '\u0001')].join('\u0000');
}

const groupName = ({ group }: Pick<Tally, 'group'>): string => nameOf(null, group);

function groupTotals(sums: readonly Sum[]): Sum[] {
  return [...Map.groupBy(sums, groupName).values()].map((own) => ({
    ...totalOf(own),
    group: own[0]?.group ?? [],
  }));
}

/** The sums of these groups: best first, or by time and then best first. */
function only(
  sums: readonly Sum[],
  groups: readonly Tally['group'][],
  { interval }: TallyQuery,
): Sum[] {
  const places = new Map(groups.map((group, place) => [groupName({ group }), place]));
  const placeOf = (sum: Sum): number => places.get(groupName(sum)) ?? Infinity;
  return sums
    .filter((sum) => placeOf(sum) < Infinity)
    .sort((a, b) => (interval === null ? 0 : byStart(a, b)) || placeOf(a) - placeOf(b));
}

function byStart(a: Tally, b: Tally): number {
  return (a.startUs ?? 0) - (b.startUs ?? 0);
}

function totalOf(sums: readonly Sum[]): Sum {
  const total = emptySum(null);
  for (const sum of sums) addSum(total, sum);
  return total;
}

const emptySum = (startUs: number | null): Sum => ({
  group: [],
  startUs,
  measures: noMeasures(),
  counts: null,
});

function addSum(sum: Sum, { measures, counts }: Sum): void {
  addMeasures(sum.measures, measures);
  if (counts) (sum.counts ??= new LatencyCounts()).addCounts(counts);
}

/** The whole without the listed groups, by interval. */
function restOf(whole: readonly Sum[], listed: readonly Sum[]): Sum[] {
  const listedByStart = Map.groupBy(listed, ({ startUs }) => startUs);
  return whole.flatMap((sum) => {
    const rest = emptySum(sum.startUs);
    addSum(rest, sum);
    for (const part of listedByStart.get(sum.startUs) ?? []) {
      subtractMeasures(rest.measures, part.measures);
      if (part.counts) rest.counts?.subtract(part.counts);
    }
    return rest.measures.calls > 0 ? [rest] : [];
  });
}

/** With percentiles. */
function shown({ counts, ...tally }: Sum): Tally {
  if (!counts || counts.count === 0) return tally;
  const percentiles = percents.map((percent) => counts.percentile(percent));
  return { ...tally, measures: { ...tally.measures, percentiles } };
}
