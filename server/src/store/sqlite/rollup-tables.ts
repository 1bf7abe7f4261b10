import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { mergeLatencies } from '../../core/latency-blob.ts';
import { dimensionFields } from '../../core/dimensions.ts';
import type { BucketCount } from '../../core/latency-blob.ts';
import type { Group, Rollup } from '../../core/rollup.ts';
import { addedColumns } from '../../query/sums-sql.ts';
import { addedValues } from '../added-values.ts';
import { deltasOf } from '../rollup-deltas.ts';
import { prepareArrays } from './array-statement.ts';

const rollupKey = 'team_no, generation, set_no, grain, bucket, group_no';

/** Adds rollups of a batch to the stored ones. The caller runs it in a transaction. */
export interface RollupTables {
  add(teamNo: number, generation: number, rollups: readonly Rollup[]): void;
  subtract(teamNo: number, generation: number, rollups: readonly Rollup[]): void;
}

export function openRollupTables(db: DatabaseSync): RollupTables {
  const upsert = db.prepare(`
    insert into rollups (${rollupKey}, ${addedColumns.join(', ')}, latencies)
    values (${Array.from({ length: 7 + addedColumns.length }, () => '?').join(', ')})
    on conflict do update set ${addedColumns.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')},
      latencies = excluded.latencies`);
  const readLatencies = prepareArrays(
    db,
    `select latencies from rollups where (${rollupKey}) = (?, ?, ?, ?, ?, ?)`,
  );
  const removeEmpty = db.prepare(
    `delete from rollups where (${rollupKey}) = (?, ?, ?, ?, ?, ?) and calls = 0`,
  );
  const readGroup = prepareArrays(
    db,
    'select no from rollup_groups where team_no = ? and set_no = ? and hash = ?',
  );
  const insertGroup = db.prepare(`
    insert into rollup_groups (team_no, set_no, hash, is_error, ${dimensionFields.join(', ')})
    values (?, ?, ?, ?, ${dimensionFields.map(() => '?').join(', ')})`);

  function groupNoOf(teamNo: number, set: number, hash: Uint8Array, group: Group) {
    const [row] = readGroup.all(teamNo, set, hash);
    if (row) return { no: row[0] as number, isNew: false };
    const values = dimensionFields.map((field): SQLInputValue => group[field] ?? null);
    const flag = group.status === 'error' ? 1 : 0;
    const { lastInsertRowid } = insertGroup.run(teamNo, set, hash, flag, ...values);
    return { no: Number(lastInsertRowid), isNew: true };
  }

  /** In the order of the primary key of each set, so that each page is visited once. */
  function addAll(
    teamNo: number,
    generation: number,
    rollups: readonly Rollup[],
    sign: 1 | -1,
  ): void {
    const groups = new Map<Uint8Array, { no: number; isNew: boolean }>();
    for (const { set, grain, bucket, hash, group, measures, latencies } of deltasOf(rollups)) {
      const { no, isNew } = groups.getOrInsertComputed(hash, () =>
        groupNoOf(teamNo, set, hash, group),
      );
      const key = [teamNo, generation, set, grain, bucket, no] as const;
      const counts: readonly BucketCount[] =
        sign === 1 ? latencies : latencies.map(([bin, count]) => [bin, -count]);
      const stored = isNew ? undefined : readLatencies.all(...key)[0]?.[0];
      const merged = mergeLatencies((stored as Uint8Array | undefined) ?? noLatencies, counts);
      upsert.run(...key, ...addedValues(measures, sign), merged);
      if (sign === -1) removeEmpty.run(...key);
    }
  }

  return {
    add: (teamNo, generation, rollups) => addAll(teamNo, generation, rollups, 1),
    subtract: (teamNo, generation, rollups) => addAll(teamNo, generation, rollups, -1),
  };
}

const noLatencies = new Uint8Array();
