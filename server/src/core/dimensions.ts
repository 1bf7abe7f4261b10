import type { LabelName } from './trace-fields.ts';

/**
 * What traces are added up by. Every group also has a status, so that errors have sums of their own. A field that is not set is a value of its own (null), so the groups of a set always add up to
 * the total. Numbers are stored, so they never change.
 */
export interface DimensionSet {
  number: number;
  fields: readonly LabelName[];
  /** From coarse to fine. */
  grains: readonly Grain[];
  /** It may have so many groups that their sums per interval do not fit into memory. */
  isWide?: true;
}

export type Grain = 'all' | 'month' | 'week' | 'day' | 'hour';

/** Stored with each rollup. The sums over all time must come first in the primary key: they say whether a group is new. */
export const grainNumbers: Readonly<Record<Grain, number>> = {
  all: 0,
  day: 1,
  hour: 2,
  week: 3,
  month: 4,
};

/** From few groups to many, so that the first set that can answer a question is the cheapest. */
export const dimensionSets = [
  { number: 0, fields: [], grains: ['all', 'month', 'week', 'day', 'hour'] },
  {
    number: 1,
    fields: ['environment', 'provider', 'model'],
    grains: ['all', 'month', 'week', 'day', 'hour'],
  },
  {
    number: 2,
    fields: ['environment', 'feature_name'],
    grains: ['all', 'month', 'week', 'day', 'hour'],
  },
  {
    number: 3,
    fields: ['user_identifier'],
    grains: ['all', 'month', 'week', 'day'],
    isWide: true,
  },
  {
    number: 4,
    fields: ['environment', 'provider', 'model', 'feature_name'],
    grains: ['all', 'month', 'week', 'day'],
  },
] as const satisfies readonly DimensionSet[];

/** Every field of a set: a group has a column for each. */
export type DimensionField = (typeof dimensionSets)[number]['fields'][number];
export const dimensionFields: readonly DimensionField[] = [
  ...new Set(dimensionSets.flatMap(({ fields }): readonly DimensionField[] => fields)),
];

/** Fields by whose value single traces are found. The numbers are part of the stored hashes, so they never change. */
export const lookupKinds = {
  user_identifier: 0,
  session_id: 1,
  run_id: 2,
} as const satisfies Partial<Record<LabelName, number>>;

/** The field that each list of the API is grouped by. */
export const breakdownFields = {
  model: 'model',
  feature: 'feature_name',
  user: 'user_identifier',
  environment: 'environment',
  provider: 'provider',
} as const;

/** Fields that a question may group by, and those that it may filter by. */
export const groupFields = [...Object.values(breakdownFields), 'status', 'error_type'] as const;
const soughtFields = ['session_id', 'run_id'] as const;
export const filterFields = [...groupFields, ...soughtFields] as const;
export type GroupField = (typeof groupFields)[number];

/** Fields whose traces can be listed in the order in which the calls began: there are few traces of each value. */
export const orderedFields: readonly (typeof soughtFields)[number][] = soughtFields;

/** Whether a field may have so many values that their sums per interval do not fit into memory. */
export function isWideField(field: string): boolean {
  return dimensionSets.some((set) => 'isWide' in set && set.fields[0] === field);
}
