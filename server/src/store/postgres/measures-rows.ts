import type { GroupMeasures } from '../../core/analytics.ts';
import { measureNames } from '../../core/rollup.ts';
import type { Measures, RollupDelta } from '../../core/rollup.ts';
import { emptyCounter } from '../sequencer.ts';
import type { TeamCounter } from '../sequencer.ts';
import { arrayOfPlain, arrayOfText } from './array-literal.ts';
import type { Row, Values } from './connection.ts';

/** The driver returns a bigint as text, since sums may exceed 2^53. */
export function measuresFromRow(row: Row): Measures {
  const measures: Record<string, bigint> = {};
  for (const name of measureNames) measures[name] = BigInt(row[name] as string);
  return measures as Measures;
}

export function groupFromRow(row: Row): GroupMeasures {
  return { group: row['key'] as string, measures: measuresFromRow(row) };
}

export function counterFromRow(row: Row | undefined): TeamCounter {
  if (!row) return emptyCounter;
  return {
    firstSeq: Number(row['first_seq']),
    lastSeq: Number(row['last_seq']),
    lastUs: Number(row['last_created_at_us']),
  };
}

/** The parameters of `addRollups` after the team. */
export function rollupColumns(deltas: readonly RollupDelta[]): Values {
  return [
    arrayOfPlain(deltas.map(({ dimension }) => dimension)),
    arrayOfPlain(deltas.map(({ day }) => day)),
    arrayOfText(deltas.map(({ group }) => group)),
    ...measureNames.map((name) => arrayOfPlain(deltas.map(({ measures }) => measures[name]))),
  ];
}
