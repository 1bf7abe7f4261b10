import { dimensionFields, dimensionSets } from '../../core/dimensions.ts';
import type { DimensionField } from '../../core/dimensions.ts';
import type { Group } from '../../core/rollup.ts';

export const inTile =
  'r.team_no = ? and r.generation = ? and r.set_no = ? and r.grain = ? and r.bucket >= ? and r.bucket < ?';

/** The columns of a group. */
export type GroupColumns = readonly [isError: number | null, ...values: (string | null)[]];

export const groupColumns = ['is_error', ...dimensionFields]
  .map((column) => `g.${column}`)
  .join(', ');
export const groupLength = 1 + dimensionFields.length;

export function groupOfColumns(set: number, [isError, ...values]: GroupColumns): Group {
  const group: Record<string, string | null> = { status: isError === 1 ? 'error' : 'success' };
  for (const field of fieldsOf.get(set) ?? []) {
    group[field] = values[dimensionFields.indexOf(field)] ?? null;
  }
  return group as unknown as Group;
}

const fieldsOf = new Map(
  dimensionSets.map(({ number, fields }): [number, readonly DimensionField[]] => [number, fields]),
);
