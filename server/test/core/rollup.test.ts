import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { calendarOf } from '../../src/core/calendar.ts';
import { dimensionSets, grainNumbers } from '../../src/core/dimensions.ts';
import type { Grain } from '../../src/core/dimensions.ts';
import { addMeasures, noMeasures } from '../../src/core/measures.ts';
import type { Measures } from '../../src/core/measures.ts';
import { RollupFold, groupHash } from '../../src/core/rollup.ts';
import type { CountedTrace, Group, Rollup } from '../../src/core/rollup.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { deltasOf } from '../../src/store/rollup-deltas.ts';
import { us } from '../support/service.ts';
import { countedTraces } from '../support/tally-cases.ts';

const zone = 'Asia/Kathmandu';

function fold(traces: readonly CountedTrace[]): Rollup[] {
  const own = new RollupFold(dimensionSets, calendarOf(zone));
  for (const trace of traces) own.add(trace);
  return own.rollups();
}

const nameOf = (rollup: Rollup): string =>
  `${rollup.set}/${rollup.grain}/${rollup.bucket}/${groupHash(rollup).toString('hex')}`;

function sumOf(rollups: readonly Rollup[]): Measures {
  const sum = noMeasures();
  for (const { measures } of rollups) addMeasures(sum, measures);
  return sum;
}

/** Histograms are maps, whose order does not matter. */
function sorted({ latencies, ...sums }: Measures) {
  return { ...sums, latencies: [...latencies].sort(([a], [b]) => a - b) };
}

test('one trace is counted once in every grain of every set', () => {
  const trace = { ...draftTrace({ model: 'm' }), createdAtUs: us('2026-11-14T18:30:00Z') };
  const day = us('2026-11-15T00:00:00Z') / 86_400_000_000;
  const hour = us('2026-11-14T18:15:00Z') / 1_000_000;
  const monday = us('2026-11-09T00:00:00Z') / 86_400_000_000;
  const first = us('2026-11-01T00:00:00Z') / 86_400_000_000;
  const bucketOf: Record<Grain, number> = { all: 0, month: first, week: monday, day, hour };
  const expected = dimensionSets.flatMap(({ number, grains }) =>
    grains.map((grain) => `${number}/${grainNumbers[grain]}/${bucketOf[grain]}`),
  );
  const found = fold([trace]).map(({ set, grain, bucket }) => `${set}/${grain}/${bucket}`);
  assert.deepEqual(found.sort(), expected.sort());
});

test('days do not overlap, even if the clock is set back shortly after midnight', () => {
  // At 00:01 on 1 November 2009 the clock was set back to 23:01.
  const calendar = calendarOf('America/St_Johns');
  const day = us('2009-11-01T00:00:00Z') / 86_400_000_000;
  const start = us('2009-11-01T02:30:00Z');
  assert.equal(calendar.startOfDay(day), start);
  assert.equal(calendar.dayOf(start - 1), day - 1);
  for (let minute = 0; minute < 24 * 60; minute++) {
    assert.equal(calendar.dayOf(start + minute * 60_000_000), day, `${minute} min`);
  }
});

test('the groups of every set and grain add up to the same total', () => {
  fc.assert(
    fc.property(countedTraces(zone), (traces) => {
      const rollups = fold(traces);
      const total = sorted(sumOf(rollups.filter(({ set, grain }) => set === 0 && grain === 0)));
      assert.equal(total.calls, traces.length);
      for (const { number, grains } of dimensionSets) {
        for (const grain of grains) {
          const own = rollups.filter((r) => r.set === number && r.grain === grainNumbers[grain]);
          assert.deepEqual(sorted(sumOf(own)), total);
        }
      }
    }),
  );
});

test('the sums do not depend on the order of the traces or on the boundaries of batches', () => {
  fc.assert(
    fc.property(countedTraces(zone), fc.nat({ max: 40 }), (traces, cut) => {
      const parts = [traces.slice(cut).toReversed(), traces.slice(0, cut)];
      const merged = Map.groupBy(
        parts.flatMap((part) => fold(part)),
        nameOf,
      );
      const whole = Map.groupBy(fold(traces), nameOf);
      assert.deepEqual([...merged.keys()].sort(), [...whole.keys()].sort());
      for (const [name, rollups] of merged) {
        assert.deepEqual(sorted(sumOf(rollups)), sorted(sumOf(whole.get(name) ?? [])), name);
      }
    }),
  );
});

test('rollups are written in the order of their key, so that two rollers never wait for each other', () => {
  fc.assert(
    fc.property(countedTraces(zone), (traces) => {
      const keys = deltasOf(fold(traces)).map(({ set, grain, bucket, hash }) => ({
        numbers: [set, grain, bucket],
        hash: Buffer.from(hash).toString('hex'),
      }));
      const inOrder = keys.toSorted(
        (a, b) =>
          a.numbers.map((n, i) => n - (b.numbers[i] ?? 0)).find((difference) => difference !== 0) ??
          (a.hash < b.hash ? -1 : 1),
      );
      assert.deepEqual(keys, inOrder);
    }),
  );
});

test('groups that differ in a value, in a missing value, or in their set have different hashes', () => {
  const status = 'success';
  const groups: [set: number, Group][] = [
    [0, { status }],
    [0, { status: 'error' }],
    [2, { status, environment: null, feature_name: 'a' }],
    [2, { status, environment: 'a', feature_name: null }],
    [2, { status, environment: 'a', feature_name: 'a' }],
    [3, { status, user_identifier: null }],
    [3, { status, user_identifier: 'null' }],
    [3, { status, user_identifier: 'a' }],
    [1, { status, environment: 'a', provider: 'b', model: 'c' }],
    [1, { status, environment: 'ab', provider: null, model: 'c' }],
  ];
  const hashes = groups.map(([set, group]) => groupHash({ set, group }).toString('hex'));
  assert.equal(new Set(hashes).size, groups.length);
});

test('sums of any number of the dearest traces are exact', () => {
  const cost_usd = limits.costUsdMax;
  const draft = draftTrace({ model: 'm', cost_usd, latency_ms: limits.countMax });
  const count = 20_000;
  const own = new RollupFold(dimensionSets, calendarOf('UTC'));
  for (let i = 0; i < count; i++) own.add({ ...draft, createdAtUs: 1 });
  for (const { measures } of own.rollups()) {
    assert.equal(measures.cost_picos, BigInt(count) * BigInt(cost_usd) * 10n ** 12n);
    assert.equal(measures.latency_sum, BigInt(count) * BigInt(limits.countMax));
    assert.deepEqual([...measures.latencies.values()], [count]);
  }
});
