import { dimensionFields, dimensionSets } from '../../core/dimensions.ts';
import type { DimensionField } from '../../core/dimensions.ts';
import type { QueryPlan } from '../../core/query-plan.ts';
import type { Group } from '../../core/rollup.ts';

export type RollupPlan = Extract<QueryPlan, { kind: 'rollups' }>;

export const inTile =
  'r.team_no = ? and r.generation = ? and r.set_no = ? and r.grain = ? and r.bucket >= ? and r.bucket < ?';

/** The columns of a rollup with its group; a row of them is an array. */
export type RollupValues = readonly [
  set: number,
  grain: number,
  bucket: number,
  calls: number,
  sums: Uint8Array,
  latencies: Uint8Array,
  isError: number | null,
  ...values: (string | null)[],
];

/** The columns of a group. */
export type GroupColumns = readonly [isError: number | null, ...values: (string | null)[]];

export const groupColumns = ['is_error', ...dimensionFields]
  .map((column) => `g.${column}`)
  .join(', ');
export const rollupColumns = `r.set_no, r.grain, r.bucket, r.calls, r.sums, r.latencies, ${groupColumns}`;
/** A left join also finds rollups whose group is missing: its columns are null. */
export function rollupTables(join: 'join' | 'left join' = 'join'): string {
  return `rollup_rows r ${join} rollup_groups g on g.team_no = r.team_no and g.group_hash = r.group_hash`;
}

export function groupOfValues([set, , , , , , ...columns]: RollupValues): Group {
  return groupOfColumns(set, columns);
}

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
