import assert from 'node:assert/strict';
import fc from 'fast-check';
import { loadPriceList } from '../../src/core/prices/load-price-list.ts';
import { OwnPrices } from '../../src/core/prices/own-prices.ts';
import { openPricer } from '../../src/core/prices/pricer.ts';
import type { Pricer } from '../../src/core/prices/pricer.ts';
import { RepriceResult } from '../../src/core/reprice.ts';
import type { RepriceFilter } from '../../src/core/reprice.ts';
import type { TraceDraft } from '../../src/core/trace-fields.ts';
import type { RepriceRun } from '../../src/store/repricer.ts';
import type { Store } from '../../src/store/store.ts';
import { interruptedRun, repriceAll } from '../../src/tools/reprice.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { randomDraft } from '../support/random-drafts.ts';
import { seededRandom } from '../support/seeded-random.ts';
import { totalOf } from '../support/service.ts';

const nowUs = Date.UTC(2026, 10, 4, 12) * 1000;
const dayUs = 86_400_000_000;

/** Which costs are computed again, at which prices, and where the run is killed: before, within or after a transaction. */
const runs = fc.record({
  model: fc.constantFrom(null, null, 'gpt-4o', 'haiku'),
  fromUs: fc.constantFrom(null, nowUs - 2 * dayUs),
  toUs: fc.constantFrom(null, nowUs - dayUs),
  scope: fc.constantFrom(
    'uncosted' as const,
    'computed' as const,
    'computed' as const,
    'all' as const,
  ),
  haikuPrice: fc.constantFrom(null, 0, 1, 3_141_593),
  kills: fc.array(
    fc.record({ at: fc.nat({ max: 6 }), moment: fc.constantFrom('before', 'within', 'after') }),
    { maxLength: 3 },
  ),
});

const history = fc.record({
  seed: fc.nat(),
  timeZone: fc.constantFrom('UTC', 'America/St_Johns'),
  steps: fc.array(
    fc.record({
      traces: fc.integer({ min: 1, max: 40 }),
      hot: fc.nat({ max: 60 }),
      wide: fc.nat({ max: 60 }),
      rebuilt: fc.option(fc.constantFrom('UTC', 'Asia/Kathmandu'), { freq: 8 }),
      run: runs,
    }),
    { minLength: 1, maxLength: 3 },
  ),
});

/** Killed once in each way, and costs change. Tried before the random ones: of few of those it may be that none is killed. */
const killedInEachWay: typeof history extends fc.Arbitrary<infer T> ? T : never = {
  seed: 1,
  timeZone: 'UTC',
  steps: [
    {
      traces: 40,
      hot: 20,
      wide: 10,
      rebuilt: null,
      run: {
        model: null,
        fromUs: null,
        toUs: null,
        scope: 'all',
        haikuPrice: 1,
        kills: (['before', 'within', 'after'] as const).map((moment) => ({ at: 0, moment })),
      },
    },
  ],
};

class Killed extends Error {}

/** What was seen, so that a test which compares nothing fails. */
export interface SeenReprices {
  transactions: number;
  kills: number;
  changed: number;
}

/** A few traces in each transaction, and a verified store after each; the run ends with `Killed` where the history says so. */
function killable(
  store: Store,
  kill: { at: number; moment: string } | undefined,
  seen: SeenReprices,
): Store {
  let transactions = 0;
  return {
    ...store,
    async repriceWindow(run) {
      const { traces, toSeq } = await store.repriceWindow(run);
      const cut = traces.slice(0, 5);
      const isCut = cut.length < traces.length;
      return { traces: cut, toSeq: isCut ? (cut.at(-1)?.seq ?? toSeq) : toSeq };
    },
    async reprice(run, savedSeq, toSeq, decide) {
      const isLast = transactions++ === kill?.at;
      if (isLast && kill?.moment === 'before') throw new Killed();
      const outcome = await store.reprice(run, savedSeq, toSeq, (traces) => {
        const decided = decide(traces);
        if (isLast && kill?.moment === 'within') throw new Killed();
        return decided;
      });
      seen.transactions += 1;
      assert.deepEqual((await verifyTeam(store, run.teamId)).differences, []);
      if (isLast) throw new Killed();
      return outcome;
    },
  };
}

/** The costs that the run must end with: from scratch, in the most obvious way. */
function expectedCost(
  { model, fromUs, toUs, scope }: RepriceFilter,
  pricer: Pricer,
  teamId: string,
  trace: TraceDraft & { createdAtUs: number },
): Pick<TraceDraft, 'cost_usd' | 'cost_source'> {
  const { cost_usd, cost_source, provider, response_model: exactModel } = trace;
  const us = trace.started_at ?? trace.createdAtUs;
  const isSent = cost_usd !== null && cost_source !== 'computed';
  const isOutside = (fromUs !== null && us < fromUs) || (toUs !== null && us >= toUs);
  const isOther = model !== null && trace.model !== model;
  const isLeft = scope === 'uncosted' ? cost_usd !== null : scope === 'computed' && isSent;
  if (isOutside || isOther || isLeft) return { cost_usd, cost_source };
  const tokens = {
    input: trace.prompt_tokens,
    output: trace.completion_tokens,
    cacheRead: trace.cache_read_tokens,
  };
  const picos = pricer.picos({ teamId, provider, exactModel, model: trace.model, us, tokens });
  if (picos === null)
    return isSent ? { cost_usd, cost_source } : { cost_usd: null, cost_source: null };
  return { cost_usd: Number(picos) / 1e12, cost_source: 'computed' };
}

function pricesWith(haikuPrice: number | null) {
  const rates = { output: 7, cacheRead: 1, cacheWrite: null, reasoning: null };
  const entry = { no: 1, teamId: null, model: 'haiku', fromDay: 0, setAtUs: 0, setBy: 'test' };
  return new OwnPrices(
    haikuPrice === null ? [] : [{ ...entry, rates: { ...rates, input: haikuPrice } }],
  );
}

/** Random traces, rolls, rebuilds and runs of `reprice`, killed and continued. The store must roll manually. */
export async function compareReprices(store: Store, numRuns: number): Promise<SeenReprices> {
  const seen: SeenReprices = { transactions: 0, kills: 0, changed: 0 };
  const list = await loadPriceList();
  let teams = 0;

  async function storedTraces(teamId: string, count: number) {
    return count === 0 ? [] : store.range(teamId, { firstSeq: 1, count });
  }

  async function repriceUntilDone(
    run: RepriceRun,
    pricer: Pricer,
    kills: readonly { at: number; moment: string }[],
    between: () => Promise<void>,
  ): Promise<RepriceRun> {
    await store.addRepriceRun(run);
    for (let attempt = 0; ; attempt++) {
      const begun = await interruptedRun(store, run.teamId, run.request);
      assert.equal(begun?.id, run.id);
      try {
        const own = killable(store, kills[attempt], seen);
        return await repriceAll(own, begun, { pricer, isDryRun: false, clock: () => nowUs });
      } catch (error) {
        if (!(error instanceof Killed)) throw error;
        seen.kills += 1;
        assert.deepEqual((await verifyTeam(store, run.teamId)).differences, []);
        await between();
      }
    }
  }

  await fc.assert(
    fc.asyncProperty(history, async ({ seed, timeZone, steps }) => {
      const random = seededRandom(seed);
      const { team } = await store.ensureTeam(`reprice ${++teams}`, 1, timeZone);
      let count = 0;
      const append = async (traces: number): Promise<void> => {
        const drafts = Array.from({ length: traces }, () => {
          const draft = randomDraft(random, nowUs);
          const cost_source =
            draft.cost_usd === null
              ? null
              : (([null, 'client', 'computed'] as const)[Math.floor(random() * 3)] ?? null);
          return { ...draft, cost_source };
        });
        const [outcome] = await store.append([{ teamId: team.id, drafts }]);
        assert.equal(outcome?.kind, 'stored');
        count += traces;
      };
      for (const { traces, hot, wide, rebuilt, run: wanted } of steps) {
        await append(traces);
        await store.roll(team.id, hot);
        await store.roll(team.id, wide);
        if (rebuilt !== null) await store.rebuild(team.id, rebuilt);
        const { kills, haikuPrice, ...filter } = wanted;
        const pricer = openPricer(pricesWith(haikuPrice), list);
        const before = await storedTraces(team.id, count);
        const expected = before.map((trace) => expectedCost(filter, pricer, team.id, trace));
        const run: RepriceRun = {
          id: `00000000-0000-7000-8000-${String(++teams).padStart(12, '0')}`,
          teamId: team.id,
          startedAtUs: nowUs + teams,
          finishedAtUs: null,
          runBy: 'test',
          request: {
            from: 'x',
            to: null,
            model: filter.model,
            onlyUncosted: false,
            includeClient: false,
          },
          filter,
          doneSeq: 0,
          lastSeq: count,
          result: new RepriceResult(2),
        };
        const repriced = before.length;
        const done = await repriceUntilDone(run, pricer, kills, () => append(3));
        const after = await storedTraces(team.id, count);
        assert.deepEqual(
          after.slice(0, repriced).map(({ cost_usd, cost_source }) => ({ cost_usd, cost_source })),
          expected,
        );
        const differing = before.filter(
          (trace, i) =>
            trace.cost_usd !== expected[i]?.cost_usd ||
            trace.cost_source !== expected[i]?.cost_source,
        );
        const sums = done.result.total();
        assert.equal(sums.changed, differing.length);
        assert.equal(sums.after - sums.before, picosOf(expected) - picosOf(before));
        const total = await totalOf(store, team.id);
        assert.equal(total.cost_picos, picosOf(after));
        assert.equal(
          total.uncosted_calls,
          after.filter(({ cost_usd }) => cost_usd === null).length,
        );
        assert.deepEqual((await verifyTeam(store, team.id)).differences, []);
        const [audited] = await store.repriceRuns(team.id);
        assert.equal(audited?.finishedAtUs, nowUs);
        assert.deepEqual(audited?.result.models(), done.result.models());
        seen.changed += sums.changed;
      }
    }),
    { numRuns, examples: [[killedInEachWay]] },
  );
  assert.ok(seen.kills >= 3 && seen.changed > 0, JSON.stringify(seen));
  return seen;
}

/** Costs of these tests are whole pico-dollars of at most 15 digits. */
function picosOf(costs: readonly { cost_usd: number | null }[]): bigint {
  return costs.reduce((sum, { cost_usd }) => sum + BigInt(Math.round((cost_usd ?? 0) * 1e12)), 0n);
}
