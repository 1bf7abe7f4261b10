import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { usPerDay } from '../../src/core/clock.ts';
import {
  RollupBatch,
  allTime,
  dimensions,
  measureNames,
  noMeasures,
} from '../../src/core/rollup.ts';
import type { Dimension, Measures, RollupDelta } from '../../src/core/rollup.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { sentTrace } from '../model/arbitraries.ts';
import type { Sent } from '../model/team-model.ts';

const history = fc.array(fc.record({ sent: sentTrace, day: fc.nat({ max: 3 }) }), {
  maxLength: 30,
});

function fold(traces: readonly { sent: Sent; day: number }[]): RollupDelta[] {
  const batch = new RollupBatch();
  for (const { sent, day } of traces) batch.add(draftTrace(sent), day * usPerDay + 1);
  return batch.deltas();
}

function sum(deltas: readonly RollupDelta[]): Measures {
  const total = { ...noMeasures };
  for (const { measures } of deltas) {
    for (const name of measureNames) total[name] += BigInt(measures[name]);
  }
  return total;
}

const nameOf = ({ dimension, day, group }: RollupDelta): string => `${dimension}/${day}/${group}`;

test('one trace is counted in the total, its model, its feature and its user', () => {
  const sent = { model: 'm', feature_name: 'f', user_identifier: 'u', latency_ms: 7 };
  assert.deepEqual(fold([{ sent, day: 2 }]).map(nameOf), [
    `0/${allTime}/`,
    '0/2/',
    `1/${allTime}/m`,
    '1/2/m',
    `2/${allTime}/f`,
    '2/2/f',
    `3/${allTime}/u`,
  ]);
});

test('a trace without a label is counted in the total only', () => {
  assert.deepEqual(
    fold([{ sent: { model: 'm' }, day: 0 }]).map(({ dimension }) => dimension),
    [dimensions.total, dimensions.total, dimensions.model, dimensions.model],
  );
});

test('days add up to all time, and models to the total', () => {
  fc.assert(
    fc.property(history, (traces) => {
      const deltas = fold(traces);
      const of = (dimension: Dimension, isDaily: boolean): Measures =>
        sum(deltas.filter((d) => d.dimension === dimension && (d.day !== allTime) === isDaily));
      assert.deepEqual(of(dimensions.total, true), of(dimensions.total, false));
      assert.deepEqual(of(dimensions.model, false), of(dimensions.total, false));
      assert.deepEqual(of(dimensions.model, true), of(dimensions.model, false));
      assert.deepEqual(of(dimensions.feature, true), of(dimensions.feature, false));
      assert.equal(of(dimensions.total, false).calls, BigInt(traces.length));
    }),
  );
});

test('the sums do not depend on the order of the traces or on the batch boundaries', () => {
  fc.assert(
    fc.property(history, fc.nat({ max: 30 }), (traces, cut) => {
      const merged = new Map<string, Measures>();
      for (const part of [traces.slice(cut).toReversed(), traces.slice(0, cut)]) {
        for (const delta of fold(part)) {
          const before = merged.get(nameOf(delta)) ?? noMeasures;
          const own = sum([delta]);
          const added = measureNames.map((name) => [name, before[name] + own[name]]);
          merged.set(nameOf(delta), Object.fromEntries(added) as Measures);
        }
      }
      const whole = new Map(fold(traces).map((delta) => [nameOf(delta), sum([delta])]));
      assert.deepEqual(merged, whole);
    }),
  );
});

test('rollups come in one order, so that two writers never wait for each other', () => {
  fc.assert(
    fc.property(history, (traces) => {
      const keys = fold(traces).map(
        ({ dimension, day, group }) => [dimension, day, group] as const,
      );
      const sorted = keys.toSorted(
        ([a, x, m], [b, y, n]) => a - b || x - y || (m < n ? -1 : m > n ? 1 : 0),
      );
      assert.deepEqual(keys, sorted);
    }),
  );
});

test('a full batch takes no more: its sums could pass 2^53', () => {
  const batch = new RollupBatch();
  const draft = draftTrace({ model: 'm', cost_usd: limits.costUsdMax });
  for (let i = 0; i < limits.rollupBatchRowsMax; i++) batch.add(draft, 1);
  assert.ok(batch.isFull);
  assert.throws(() => batch.add(draft, 1), /full/);
  for (const { measures } of batch.deltas()) {
    for (const name of measureNames) assert.ok(Number.isSafeInteger(measures[name]), name);
  }
});
