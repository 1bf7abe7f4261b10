import type { CostScope } from '../core/reprice.ts';
import { costNames } from '../core/trace-cost.ts';
import { columnOf, startName } from '../core/trace-fields.ts';

/** What both stores say in the same words. */
export const [amountColumn, sourceColumn] = costNames;

export const costScopes: Readonly<Record<CostScope, string>> = {
  uncosted: `${amountColumn} is null`,
  computed: `(${amountColumn} is null or ${sourceColumn} = 'computed')`,
  all: 'true',
};

/** When a call began. */
export const eventTime = `coalesce(${columnOf(startName)}, created_at_us)`;
