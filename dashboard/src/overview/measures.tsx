import type { ComponentChildren } from 'preact';
import type { QueryTotals } from '../../../client/src/reading.ts';
import { exactCount, shortCount } from '../format/count.ts';
import { axisMoney, exactMoney } from '../format/money.ts';
import { Count, TotalCost } from '../parts/quantity.tsx';
import type { MeasureName } from '../route/route.ts';
import type { FilterField } from '../view/filters.ts';
import { sum } from './series.ts';

/** What is added up in a stacked chart. */
export interface Measure {
  name: 'Cost' | 'Calls' | 'Errors';
  of: (row: QueryTotals) => number;
  /** For the axis. */
  format: (value: number) => string;
  exact: (value: number) => string;
  wholeNumbers: boolean;
  /** The sum of these rows; costs of a table column have a common format. */
  show: (rows: readonly QueryTotals[], formatCost?: (usd: number) => string) => ComponentChildren;
  /** Which of the calls are counted. */
  filter: Partial<Record<FilterField, string>>;
}

const callsOf = (row: QueryTotals): number => row.call_count;
const errorsOf = (row: QueryTotals): number => row.error_count;
const costOf = (row: QueryTotals): number => row.total_cost_usd;

const counts = {
  format: shortCount,
  exact: exactCount,
  wholeNumbers: true,
};

export const measures: Readonly<Record<MeasureName, Measure>> = {
  cost: {
    name: 'Cost',
    of: costOf,
    format: axisMoney,
    exact: exactMoney,
    wholeNumbers: false,
    show: (rows, format) => (
      <TotalCost usd={sum(rows.map(costOf))} calls={sum(rows.map(callsOf))} format={format} />
    ),
    filter: {},
  },
  calls: {
    name: 'Calls',
    of: callsOf,
    ...counts,
    show: (rows) => <Count value={sum(rows.map(callsOf))} />,
    filter: {},
  },
  errors: {
    name: 'Errors',
    of: errorsOf,
    ...counts,
    show: (rows) => <Count value={sum(rows.map(errorsOf))} />,
    filter: { status: 'error' },
  },
};
