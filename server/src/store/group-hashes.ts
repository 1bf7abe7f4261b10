import type { DimensionField, DimensionSet } from '../core/dimensions.ts';
import type { TraceFilter } from '../core/query.ts';
import { groupHash } from '../core/rollup.ts';
import type { Group } from '../core/rollup.ts';

/**
 * The groups that a filter allows, if it has values for every field of the set: they are found by their hash, instead of reading the
 * groups of all users. Null if it does not, or if there are too many.
 */
export function groupHashes(filter: TraceFilter, set: DimensionSet): Buffer[] | null {
  if (set.fields.length === 0) return null;
  const statuses = filter.status ?? 'set';
  let groups: Group[] = (['success', 'error'] as const)
    .filter((status) => statuses === 'set' || statuses.includes(status))
    .map((status) => ({ status }));
  for (const field of set.fields as readonly DimensionField[]) {
    const accepted = filter[field];
    if (accepted === undefined || accepted === 'set') return null;
    groups = groups.flatMap((group) =>
      [...new Set(accepted)].map((value) => ({ ...group, [field]: value })),
    );
    if (groups.length > hashesMax) return null;
  }
  return groups.map((group) => groupHash({ set: set.number, group }));
}

/** Both statuses of as many users as a reply lists. */
const hashesMax = 2_000;
