import type { ComponentChildren } from 'preact';
import type { QueryTotals } from '../../../client/src/reading.ts';
import { exactCount, shortCount } from '../format/count.ts';
import { exactDuration, shortDuration } from '../format/duration.ts';
import { exactMoney, shortMoney } from '../format/money.ts';
import { percent } from '../format/percent.ts';
import { Count, Duration, Percent, TotalCost } from '../parts/quantity.tsx';
import { behind, tracesHref } from '../route/route.ts';
import type { OverviewRoute } from '../route/route.ts';
import { differenceOf, shareWords } from '../view/difference.ts';
import type { Better, Difference } from '../view/difference.ts';

/** A headline number. */
interface FigureKind {
  name: string;
  /** Null if it is not known. */
  of: (totals: QueryTotals) => number | null;
  show: (totals: QueryTotals) => ComponentChildren;
  /** The difference, short, and the earlier value, exact. */
  short: (value: number) => string;
  exact: (value: number) => string;
  better: Better;
  isRate?: boolean;
  onlyErrors?: boolean;
}

const kinds: readonly FigureKind[] = [
  {
    name: 'Cost',
    of: (totals) => totals.total_cost_usd,
    show: (totals) => <TotalCost usd={totals.total_cost_usd} calls={totals.call_count} />,
    short: shortMoney,
    exact: exactMoney,
    better: 'less',
  },
  {
    name: 'Calls',
    of: (totals) => totals.call_count,
    show: (totals) => <Count value={totals.call_count} />,
    short: shortCount,
    exact: exactCount,
    better: 'neither',
  },
  {
    name: 'Errors',
    of: (totals) => totals.error_count,
    show: (totals) => <Count value={totals.error_count} />,
    short: shortCount,
    exact: exactCount,
    better: 'less',
    onlyErrors: true,
  },
  {
    name: 'Success rate',
    of: successOf,
    show: (totals) => <Percent value={successOf(totals)} />,
    short: (value) => `${value.toFixed(2)} points`,
    exact: percent,
    better: 'more',
    isRate: true,
  },
  {
    name: 'Average latency',
    of: (totals) => totals.avg_latency_ms,
    show: (totals) => <Duration value={totals.avg_latency_ms} />,
    short: shortDuration,
    exact: exactDuration,
    better: 'less',
  },
  {
    name: 'p95 latency',
    of: (totals) => totals.p95_latency_ms,
    show: (totals) => <Duration value={totals.p95_latency_ms} />,
    short: shortDuration,
    exact: exactDuration,
    better: 'less',
  },
];

/** No calls have no rate, which is not the same as 0%. */
function successOf({ call_count: calls, success_rate: rate }: QueryTotals): number | null {
  return calls === 0 ? null : rate;
}

/** The period before. */
export interface Before {
  totals: QueryTotals;
  /** `Nov 2 – 8, 2026`. */
  words: string;
}

interface FiguresProps {
  route: OverviewRoute;
  totals: QueryTotals | null;
  /** Null while it is loading, and if there is none. */
  before: Before | null;
}

/** The headline numbers, each with its difference to the period before, and a link to its traces. */
export function Figures({ route, totals, before }: FiguresProps) {
  return (
    <section class="figures" aria-label="Totals" aria-busy={totals === null}>
      {kinds.map((kind) => (
        <dl key={kind.name} class="figure">
          <dt>{kind.name}</dt>
          <dd class="figure-value">
            {totals === null ? (
              <span class="bone" aria-hidden="true" />
            ) : (
              <FigureLink route={route} kind={kind} totals={totals} />
            )}
          </dd>
          <dd class="figure-change">
            {totals !== null && before !== null && (
              <Change kind={kind} totals={totals} before={before} />
            )}
          </dd>
        </dl>
      ))}
    </section>
  );
}

function FigureLink({ route, kind, totals }: Omit<FiguresProps, 'before'> & FigureOf) {
  const counted = kind.onlyErrors === true ? totals.error_count : totals.call_count;
  if (counted === 0) return <>{kind.show(totals)}</>;
  const question = behind(route, kind.onlyErrors === true ? { status: 'error' } : {});
  return (
    <a class="figure-link" href={tracesHref({ question })}>
      {kind.show(totals)}
    </a>
  );
}

interface FigureOf {
  kind: FigureKind;
  totals: QueryTotals;
}

function Change({ kind, totals, before }: FigureOf & { before: Before }) {
  const earlier = kind.of(before.totals);
  const title = `${before.words}: ${earlier === null ? 'not known' : kind.exact(earlier)}`;
  const difference = differenceOf(kind.of(totals), earlier, kind.better);
  // Compared with nothing, everything is new.
  const isFirst = before.totals.call_count === 0;
  if (difference === null || isFirst) {
    return <span title={title}>{isFirst ? 'no calls before' : ''}</span>;
  }
  return (
    <span class={`change ${difference.tone}`} title={title}>
      {changeWords(kind, difference)}
    </span>
  );
}

const arrows = { up: '▲', down: '▼', same: '' };
const directions = { up: 'up ', down: 'down ', same: '' };
const tones = { good: ', better', bad: ', worse', neutral: '' };

function changeWords(kind: FigureKind, { direction, tone, amount, share }: Difference) {
  if (direction === 'same') return 'no change';
  const isShareShown = share !== null && kind.isRate !== true;
  return (
    <>
      <span aria-hidden="true">{arrows[direction]} </span>
      <span class="visually-hidden">{directions[direction]}</span>
      <b>{kind.short(amount)}</b>
      {isShareShown && <span> ({shareWords(share)})</span>}
      <span class="visually-hidden">{tones[tone]}</span>
    </>
  );
}
