import type { DatabaseSync } from 'node:sqlite';
import { groupHash } from '../../core/rollup.ts';
import { inTransaction } from './connection.ts';
import { groupColumns, groupOfColumns } from './rollup-values.ts';
import type { GroupColumns } from './rollup-values.ts';

/**
 * Groups whose values do not match their hash are not found by it any more, so a rebuild adds them again with the right values. The rows stay
 * for the rollups that use them meanwhile.
 */
export function setAsideWrongGroups(rollups: DatabaseSync, teamNo: number): void {
  const read = rollups.prepare(
    `select g.no, g.set_no, g.hash, ${groupColumns} from rollup_groups g where g.team_no = ?`,
  );
  read.setReturnArrays(true);
  const wrong: number[] = [];
  for (const row of read.iterate(teamNo) as unknown as Iterable<unknown[]>) {
    const [no, set, hash, ...columns] = row as [number, number, Uint8Array, ...GroupColumns];
    const group = groupOfColumns(set, columns as GroupColumns);
    if (Buffer.compare(groupHash({ set, group }), hash) !== 0) wrong.push(no);
  }
  if (wrong.length === 0) return;
  const setAside = rollups.prepare(
    "update rollup_groups set hash = cast('wrong ' || no as blob) where no = ?",
  );
  inTransaction(rollups, () => {
    for (const no of wrong) setAside.run(no);
  });
}
