import type { QueryReply } from '../../../client/src/reading.ts';
import type { Load, Loading } from '../live/loader.ts';
import type { Query } from '../api/reads.ts';
import { useQuery } from '../live/use-query.ts';
import type { Asked } from '../question/use-asked.ts';
import type { StackField } from '../route/route.ts';
import { intervalOf, intervalOfHours } from '../view/range.ts';
import type { Interval } from '../view/range.ts';
import { stackColours } from './series-charts.tsx';
import { bucketsOf, layersOf } from './series.ts';
import type { Bucket, Layer } from './series.ts';

export interface Series {
  buckets: readonly Bucket[] | null;
  layers: readonly Layer[] | null;
  loads: readonly Loading<QueryReply>[];
}

/** What the charts show: all calls together, and the first groups. */
export function useSeries(asked: Asked, stack: StackField, order: Query['order']): Series {
  const { criteria: filter, range, version } = asked;
  const known = intervalOf(range);
  // All time begins with the first call, so the interval depends on when that was.
  const months = useQuery(known === null ? { filter, interval: 'month' } : null, version);
  const interval = known ?? intervalOfAll(months.state);
  const base = interval === null ? null : ({ filter, interval, fill: 'zero' } as const);
  const whole = useQuery(base, version);
  const limit = stackColours.length;
  const groups = useQuery(base && { ...base, groupBy: stack, order, limit }, version);
  const buckets =
    whole.state.kind === 'ready' && interval !== null
      ? bucketsOf(whole.state.value, interval, range)
      : null;
  const layers =
    groups.state.kind === 'ready' && buckets !== null
      ? layersOf(groups.state.value, stack, buckets)
      : null;
  return { buckets, layers, loads: [months, whole, groups] };
}

function intervalOfAll(months: Load<QueryReply>): Interval | null {
  if (months.kind !== 'ready') return null;
  const first = months.value.rows[0]?.start;
  const startMs = first === undefined ? Date.now() : Date.parse(first);
  // At least a week: a few bars say more than one.
  return intervalOfHours(Math.max(24 * 7, (Date.now() - startMs) / 3_600_000));
}
