import assert from 'node:assert/strict';
import { calendarOf } from '../../src/core/calendar.ts';
import type { RollSpeed } from '../../src/core/dimensions.ts';
import { encodeMeasures } from '../../src/core/measures.ts';
import { RollupFold, groupHash } from '../../src/core/rollup.ts';
import type { Group, Rollup } from '../../src/core/rollup.ts';
import type { AuditedRollup, Auditor } from '../../src/store/audit.ts';

/** Fails unless the rollups of a team are exactly the sums of its traces up to the marks. Returns the number of rollups. */
export async function assertRefolds(store: Auditor, teamId: string): Promise<number> {
  return store.audit(teamId, async ({ traces, rollups, marks }) => {
    const calendar = calendarOf(marks.timeZone);
    const folds: Record<RollSpeed, RollupFold> = {
      hot: new RollupFold('hot', calendar),
      wide: new RollupFold('wide', calendar),
    };
    for await (const chunk of traces) {
      for (const trace of chunk) {
        for (const speed of ['hot', 'wide'] as const) {
          if (trace.seq <= marks.rolledSeq[speed]) folds[speed].add(trace);
        }
      }
    }
    const expected = [...folds.hot.rollups(), ...folds.wide.rollups()].map(textOf).sort();
    const stored: string[] = [];
    for await (const chunk of rollups) stored.push(...chunk.map(textOfRow));
    assert.deepEqual(stored.sort(), expected);
    return stored.length;
  });
}

function textOf({ set, grain, bucket, group, measures }: Rollup): string {
  const sums = Buffer.from(encodeMeasures(measures)).toString('hex');
  return [set, grain, bucket, hashOf(set, group), measures.calls, sums].join(' ');
}

function textOfRow({ set, grain, bucket, hash, group, calls, sums }: AuditedRollup): string {
  assert.ok(group, 'the values of a group are missing');
  assert.equal(Buffer.from(hash).toString('hex'), hashOf(set, group));
  return [set, grain, bucket, hashOf(set, group), calls, Buffer.from(sums).toString('hex')].join(
    ' ',
  );
}

function hashOf(set: number, group: Group): string {
  return groupHash({ set, group }).toString('hex');
}
