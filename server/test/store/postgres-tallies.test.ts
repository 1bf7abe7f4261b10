import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { CountedTrace } from '../../src/core/rollup.ts';
import { narrowNames } from '../../src/core/trace-fields.ts';
import type { TraceDraft } from '../../src/core/trace-fields.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { comparable, comparableNaive, naiveTallies, nameOf } from '../support/naive-tallies.ts';
import { usePostgres } from '../support/postgres.ts';
import { assertRefolds } from '../support/refold.ts';
import { countedTraces, tallyQueries, timeZones } from '../support/tally-cases.ts';

const postgres = usePostgres();
let teams = 0;

async function openStore(): Promise<Store> {
  const url = await postgres.createDatabase();
  const options = { clock: { kind: 'system' }, role: 'tool', rolling: 'manual' } as const;
  return openPostgresStore({ ...options, url });
}

/** What happens to a team, in this order. */
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('append' as const), count: fc.nat({ max: 15 }) }),
    fc.record({
      kind: fc.constant('roll' as const),
      speed: fc.constantFrom('hot' as const, 'wide' as const),
      rowsMax: fc.integer({ min: 1, max: 20 }),
    }),
    fc.record({ kind: fc.constant('rebuild' as const), timeZone: fc.constantFrom(...timeZones) }),
  ),
  { minLength: 2, maxLength: 8 },
);

const cases = fc.constantFrom(...timeZones).chain((timeZone) =>
  fc.record({
    timeZone: fc.constant(timeZone),
    traces: countedTraces(timeZone),
    steps,
    queries: fc.array(tallyQueries(timeZone), { minLength: 3, maxLength: 5 }),
  }),
);

function draftOf(trace: CountedTrace): TraceDraft {
  const values = Object.fromEntries(narrowNames.map((name) => [name, trace[name]]));
  return {
    ...(values as Pick<TraceDraft, keyof typeof values & keyof TraceDraft>),
    ...{ input: null, output: null, error_message: null, metadata: null },
  } as TraceDraft;
}

test('answers with tails of any length, after any rolls and rebuilds, equal those of a plain array', async () => {
  await using closing = new AsyncDisposableStack();
  const store = await openStore();
  closing.defer(() => store.close());
  let groups = 0;
  let rollups = 0;
  await fc.assert(
    fc.asyncProperty(cases, async ({ timeZone, traces, steps: taken, queries }) => {
      const { team } = await store.ensureTeam(`property-${++teams}`, 1, timeZone);
      const waiting = traces.toSorted((a, b) => a.createdAtUs - b.createdAtUs);
      const stored: CountedTrace[] = [];
      for (const step of [...taken, { kind: 'append', count: 40 } as const]) {
        if (step.kind === 'roll') await store.roll(team.id, step.speed, step.rowsMax);
        if (step.kind === 'rebuild') await store.rebuild(team.id, step.timeZone);
        if (step.kind !== 'append') continue;
        const next = waiting.splice(0, step.count);
        if (next.length === 0) continue;
        const write = {
          teamId: team.id,
          drafts: next.map(draftOf),
          timesUs: next.map(({ createdAtUs }) => createdAtUs),
        };
        const [outcome] = await store.append([write]);
        assert.equal(outcome?.kind, 'stored', JSON.stringify(outcome));
        const stamps = outcome?.kind === 'stored' ? outcome.stamps : [];
        for (const [i, trace] of next.entries()) {
          stored.push({ ...trace, createdAtUs: stamps[i]?.createdAtUs ?? 0 });
        }
      }
      const zone = await store.timeZone(team.id);
      for (const query of queries) {
        const { first, rest } = await store.tallies(team.id, query);
        assert.equal(rest, null);
        const expected = naiveTallies(stored, query, zone);
        assert.equal(first.length, expected.size, JSON.stringify(query));
        for (const tally of first) {
          const naive = expected.get(nameOf(tally));
          assert.ok(naive, nameOf(tally));
          assert.deepEqual(comparable(tally), comparableNaive(naive));
        }
        groups += first.length;
        const top = await store.tallies(team.id, query, 2);
        assert.deepEqual(top.first, first.slice(0, 2));
      }
      rollups += await assertRefolds(store, team.id);
    }),
    { numRuns: Number(process.env['PROPERTY_RUNS'] ?? 1_000) },
  );
  assert.ok(groups > 1_000 && rollups > 1_000, `${groups} groups, ${rollups} rollups`);
});
