import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import type { CallIds, TraceWrite } from '../../src/store/trace-writer.ts';
import type { Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import {
  joined,
  randomCalls,
  randomRequests,
  tokensOf,
  withoutLateConnections,
} from '../property/call-histories.ts';
import { runsOf } from '../support/runs.ts';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';
import { manualClock, us } from '../support/service.ts';
import type { ManualClock } from '../support/service.ts';
import type { StoreUnderTest } from './store-contract.ts';

const noon = us('2026-11-04T12:00:00Z');
const lifeUs = limits.idempotencyLifeMs * 1000;

/** A call by its model, and the ids under which it is reported. */
type Call = [model: string, ids: Partial<CallIds> | null];

/** What every store must do with calls that are reported more than once. */
export function describeCountOnceContract(
  name: string,
  prepare: () => Promise<StoreUnderTest>,
): void {
  describe(`calls that are reported twice in the ${name} store`, () => {
    let stage: StoreUnderTest;
    let clock: ManualClock;
    let store: Store;
    let teams = 0;

    before(async () => {
      stage = await prepare();
      clock = manualClock(noon);
      store = await stage.open({ clock: clock.source, role: 'server' });
    });
    after(async () => {
      await store.close();
      await stage.dispose();
    });

    async function newTeam(): Promise<string> {
      clock.set(noon);
      return (await store.ensureTeam(`count-once-${++teams}`, noon)).team.id;
    }

    /** The indexes of the calls that were left out. */
    async function report(teamId: string, calls: readonly Call[]): Promise<readonly number[]> {
      const [outcome] = await store.append([writeOf(teamId, calls)]);
      assert.equal(outcome?.kind, 'stored');
      const { stamps, duplicates = [] } = outcome;
      assert.equal(stamps.length + duplicates.length, calls.length);
      return duplicates;
    }

    /** The team's models, oldest first. Also verifies the team. */
    async function modelsOf(teamId: string): Promise<string[]> {
      const { first } = await store.page(teamId, { page: 1, limit: 100, omit: new Set() });
      const { traces, differences } = await verifyTeam(store, teamId);
      assert.deepEqual([traces, differences], [first.length, []]);
      return first.map(({ model }) => model).toReversed();
    }

    test('a call with a span id or response id that was stored before is left out, the others of its write are stored', async () => {
      const teamId = await newTeam();
      assert.deepEqual(await report(teamId, [['a', { span: '1', response: 'x' }]]), []);
      const again: Call[] = [
        ['same span', { span: '1' }],
        ['b', { span: '2', response: 'y' }],
        ['same response', { span: '3', response: 'x' }],
        ['c', { span: '4' }],
        ['without ids', null],
      ];
      assert.deepEqual(await report(teamId, again), [0, 2]);
      assert.deepEqual(await report(teamId, again), [0, 1, 2, 3]);
      const models = ['a', 'b', 'c', 'without ids', 'without ids'];
      assert.deepEqual(await modelsOf(teamId), models);
    });

    test('of two reports in one write, in one call and in concurrent calls, the first is stored', async () => {
      const teamId = await newTeam();
      const inOneWrite: Call[] = [
        ['a', { span: '1', response: 'x' }],
        ['again', { span: '2', response: 'x' }],
      ];
      assert.deepEqual(await report(teamId, inOneWrite), [1]);
      const one: Call[] = [['b', { span: '3' }]];
      const inOneCall = await store.append([writeOf(teamId, one), writeOf(teamId, one)]);
      const concurrent = await Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          store.append([writeOf(teamId, [['c', { span: '4', response: 'z' }]])], i < 9),
        ),
      );
      const storedOf = (outcomes: typeof inOneCall): number =>
        outcomes.reduce((sum, one) => sum + (one.kind === 'stored' ? one.stamps.length : 0), 0);
      assert.equal(storedOf(inOneCall), 1);
      assert.equal(storedOf(concurrent.flat()), 1);
      assert.deepEqual(await modelsOf(teamId), ['a', 'b', 'c']);
    });

    test('a call of another emitter inside a call is the same one, whichever is reported first; any others inside are other calls', async () => {
      const teamId = await newTeam();
      const framework = { emitter: 'fram' };
      assert.deepEqual(await report(teamId, [['inner', { span: '2', outerSpan: '1' }]]), []);
      assert.deepEqual(await report(teamId, [['inner 2', { span: '3', outerSpan: '1' }]]), []);
      const outer: Call[] = [['outer', { span: '1', outerSpan: '0', ...framework }]];
      assert.deepEqual(await report(teamId, outer), [0]);
      assert.deepEqual(await report(teamId, [['first', { span: '5', ...framework }]]), []);
      assert.deepEqual(await report(teamId, [['within', { span: '6', outerSpan: '5' }]]), [0]);
      assert.deepEqual(await report(teamId, [['within 2', { span: '7', outerSpan: '5' }]]), []);
      assert.deepEqual(await report(teamId, [['within', { span: '6', outerSpan: '5' }]]), [0]);
      const chain: Call[] = [
        ['innermost', { span: '8', outerSpan: '9' }],
        ['middle', { span: '9', outerSpan: '10', ...framework }],
        ['outermost', { span: '10', emitter: 'app1' }],
      ];
      assert.deepEqual(await report(teamId, chain), [1, 2]);
      const models = ['inner', 'inner 2', 'first', 'within 2', 'innermost'];
      assert.deepEqual(await modelsOf(teamId), models);
    });

    test('nested calls of one emitter, attempts that ended otherwise and calls with another response are never the same', async () => {
      const outer: Call = ['outer', { span: '1', emitter: 'fram', response: 'x' }];
      const others: Call[] = [
        ['same emitter', { span: '2', outerSpan: '1', emitter: 'fram' }],
        ['failed', { span: '3', outerSpan: '1', isError: true }],
        ['another response', { span: '4', outerSpan: '1', response: 'y' }],
      ];
      for (const calls of [
        [outer, ...others],
        [...others, outer],
      ]) {
        const teamId = await newTeam();
        for (const call of calls) assert.deepEqual(await report(teamId, [call]), [], call[0]);
        for (const call of calls) assert.deepEqual(await report(teamId, [call]), [0], call[0]);
      }
    });

    test('a span can become a call and the span around one in the same transaction', async () => {
      const teamId = await newTeam();
      const outcomes = await store.append([
        writeOf(teamId, [['outer', { span: '5', emitter: 'fram' }]]),
        writeOf(teamId, [
          ['inner', { span: '6', outerSpan: '5' }],
          ['other', { span: '7' }],
        ]),
      ]);
      assert.deepEqual(
        outcomes.map((outcome) => outcome.kind === 'stored' && outcome.duplicates),
        [[], [0]],
      );
      assert.deepEqual(await report(teamId, [['again', { span: '5' }]]), [0]);
      assert.deepEqual(await report(teamId, [['inner 2', { span: '8', outerSpan: '5' }]]), []);
      assert.deepEqual(await modelsOf(teamId), ['outer', 'other', 'inner 2']);
    });

    test("another team's calls with the same ids are stored", async () => {
      const [one, other] = [await newTeam(), await newTeam()];
      const calls: Call[] = [['m', { span: '1', outerSpan: '2', response: 'x' }]];
      const outcomes = await store.append([writeOf(one, calls), writeOf(other, calls)]);
      assert.deepEqual(
        outcomes.map((outcome) => outcome.kind === 'stored' && outcome.stamps.length),
        [1, 1],
      );
      assert.deepEqual(await modelsOf(other), ['m']);
    });

    test('ids are remembered for exactly 24 hours, and expired ones are removed', async () => {
      const teamId = await newTeam();
      const ids = Array.from({ length: 400 }, (_, i): Call => [`m${i}`, { span: `old${i}` }]);
      await report(teamId, ids);
      clock.set(noon + lifeUs - 1);
      assert.deepEqual(await report(teamId, [['again', { span: 'old0' }]]), [0]);
      clock.set(noon + lifeUs);
      assert.deepEqual(await report(teamId, [['new', { span: 'old0' }]]), []);
      const fresh = Array.from({ length: 200 }, (_, i): Call => [`n${i}`, { span: `new${i}` }]);
      await report(teamId, fresh);
      const kept = await store.storedRequests(teamId, 0);
      assert.equal(kept.length, 201, 'of the old ones only the one that was used again');
    });

    test('random reports of the same calls are counted as often as in memory, in any order', async () => {
      const seed = chooseSeed();
      for (let run = 0; run < runsOf(20); run++) {
        const random = seededRandom(seed + run);
        const history = randomCalls(random);
        const teamId = await newTeam();
        for (const request of withoutLateConnections(randomRequests(random, history.reports))) {
          const calls = joined(request);
          if (calls.length === 0) continue;
          const drafts = calls.map(({ draft }) => draft);
          await store.append([{ teamId, drafts, calls: calls.map(({ ids }) => ids) }]);
        }
        const { first } = await store.page(teamId, { page: 1, limit: 100, omit: new Set() });
        assert.equal(first.length, history.calls, `TEST_SEED=${seed + run}`);
        if (history.tokens) assert.deepEqual(tokensOf(first), history.tokens);
      }
    });

    test('ids survive closing the store, and are not left by a write that failed', async () => {
      const teamId = await newTeam();
      const poison = writeOf(teamId, [
        ['ok', { span: '1' }],
        ['bad', { span: '2' }],
      ]);
      // No route lets this through.
      Object.assign(poison.drafts[1] ?? {}, { model: null });
      const [failed, stored] = await store.append([
        poison,
        writeOf(teamId, [['m', { span: '3' }]]),
      ]);
      assert.deepEqual([failed?.kind, stored?.kind], ['failed', 'stored']);
      assert.deepEqual(await report(teamId, [['ok', { span: '1' }]]), []);
      await store.close();
      store = await stage.open({ clock: clock.source, role: 'server' });
      assert.deepEqual(await report(teamId, [['again', { span: '3' }]]), [0]);
      assert.deepEqual(await modelsOf(teamId), ['m', 'ok']);
    });
  });
}

const noIds: CallIds = {
  span: null,
  outerSpan: null,
  response: null,
  emitter: 'sdk1',
  isError: false,
};

function writeOf(teamId: string, calls: readonly Call[]): TraceWrite {
  return {
    teamId,
    drafts: calls.map(([model]) => draftTrace({ model })),
    calls: calls.map(([, ids]) => (ids ? [{ ...noIds, ...ids }] : [])),
  };
}
