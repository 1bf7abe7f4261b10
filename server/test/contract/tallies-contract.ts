import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { overviewQuery } from '../../src/core/analytics.ts';
import type { TallyQuery } from '../../src/core/query.ts';
import { draftTrace } from '../../src/core/trace.ts';
import type { TraceDraft } from '../../src/core/trace-fields.ts';
import { limits } from '../../src/limits.ts';
import { lookupBlockBits, lookupFields } from '../../src/store/trace-lookups.ts';
import type { Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { changeCosts } from '../support/changed-costs.ts';
import { groupsOf, manualClock, talliesOf, totalOf, us } from '../support/service.ts';
import type { StoreUnderTest } from './store-contract.ts';

const noon = us('2026-11-04T12:00:00Z');
const all = 1_000_000;

/** What every store must do with rollups, the traces after them, and lookups. The store rolls only when it is told to. */
export function describeTalliesContract(
  name: string,
  prepare: () => Promise<StoreUnderTest>,
): void {
  describe(`rollups of the ${name} store`, () => {
    let stage: StoreUnderTest;
    let store: Store;
    let teams = 0;

    before(async () => {
      stage = await prepare();
      const { source } = manualClock(noon);
      store = await stage.open({ clock: source, role: 'server', rolling: 'manual' });
    });
    after(async () => {
      await store.close();
      await stage.dispose();
    });

    async function newTeam(timeZone?: string): Promise<string> {
      const { team } = await store.ensureTeam(`rollups-${++teams}`, noon, timeZone);
      return team.id;
    }

    async function append(teamId: string, fields: readonly Partial<TraceDraft>[]): Promise<void> {
      const drafts = fields.map((own) => ({ ...draftTrace({ model: 'm' }), ...own }));
      for (let at = 0; at < drafts.length; at += 1_000) {
        const [outcome] = await store.append([{ teamId, drafts: drafts.slice(at, at + 1_000) }]);
        assert.equal(outcome?.kind, 'stored');
      }
    }

    async function rollAll(teamId: string): Promise<void> {
      {
        while ((await store.roll(teamId, all)) > 0);
      }
    }

    test('every answer contains changed costs at once, in the interval of their traces', async () => {
      const teamId = await newTeam();
      await append(
        teamId,
        Array.from({ length: 40 }, (_, i) => ({
          model: `m${i % 4}`,
          cost_usd: 1,
          started_at: noon - i * 3_600_000_000,
        })),
      );
      await rollAll(teamId);
      await changeCosts(store, teamId, [0, 30], () => 3);
      const questions: TallyQuery[] = [
        overviewQuery,
        { ...overviewQuery, interval: 'day' },
        { ...overviewQuery, groupBy: ['model'], interval: 'hour' },
      ];
      const order = { by: 'total_cost_usd', isDescending: true } as const;
      for (const query of questions) {
        const tallies = await talliesOf(store, teamId, query);
        const costs = tallies.map(({ measures }) => measures.cost_picos);
        assert.equal(
          costs.reduce((sum, cost) => sum + cost, 0n),
          100n * 10n ** 12n,
        );
        const report = await store.ranking(teamId, query, order, 2);
        if (report) assert.equal(report.totals.cost_picos, 100n * 10n ** 12n);
      }
    });

    test('an answer is the same while nothing, some or all of the traces are rolled up', async () => {
      const teamId = await newTeam();
      await append(
        teamId,
        Array.from({ length: 60 }, (_, i) => ({
          model: `m${i % 4}`,
          user_identifier: i % 3 === 0 ? null : `u${i % 5}`,
          status: i % 7 === 0 ? ('error' as const) : ('success' as const),
          latency_ms: i * 37,
          cost_usd: i / 1_000,
          started_at: noon - i * 3_600_000_000,
        })),
      );
      const questions: TallyQuery[] = [
        overviewQuery,
        { ...overviewQuery, groupBy: ['model'], interval: 'day' },
        { ...overviewQuery, groupBy: ['user_identifier'] },
        { ...overviewQuery, groupBy: ['status'], interval: 'hour' },
        { ...overviewQuery, filter: { user_identifier: ['u1', null] }, groupBy: ['model'] },
      ];
      const answers = () => Promise.all(questions.map((query) => talliesOf(store, teamId, query)));
      const expected = await answers();
      assert.equal(expected[0]?.[0]?.measures.calls, 60);
      assert.equal(await store.roll(teamId, 7), 7);
      assert.deepEqual(await answers(), expected);
      assert.equal(await store.roll(teamId, 31), 31);
      assert.deepEqual(await answers(), expected);
      await rollAll(teamId);
      const { seq } = await store.marks(teamId);
      assert.equal(seq, 60);
      assert.deepEqual(await answers(), expected);
      assert.equal(await store.roll(teamId, all), 0);
      assert.deepEqual(await verifyTeam(store, teamId), { traces: 60, differences: [] });
    });

    test('a list is cut at its limit, whether it comes from rollups or is read from traces', async () => {
      const teamId = await newTeam();
      await append(
        teamId,
        Array.from({ length: 30 }, (_, i) => ({
          model: `m${i % 2}`,
          user_identifier: `u${i % 5}`,
        })),
      );
      for (const filter of [{}, { model: ['m1'] }]) {
        const query: TallyQuery = { ...overviewQuery, filter, groupBy: ['user_identifier'] };
        const all = await talliesOf(store, teamId, query);
        assert.equal(all.length, 5);
        const { first, rest } = await store.tallies(teamId, query, 2);
        assert.deepEqual([first, rest], [all.slice(0, 2), null]);
      }
    });

    test('two that roll at the same time add each trace once', async () => {
      const teamId = await newTeam();
      await append(teamId, Array(500).fill({ latency_ms: 5 }));
      const { source } = manualClock(noon);
      const beside = await stage.open({ clock: source, role: 'tool', rolling: 'manual' });
      try {
        const rolling = async (by: Store) => {
          let rows = 0;
          for (let i = 0; i < 10; i++) rows += await by.roll(teamId, 50);
          return rows;
        };
        const rows = await Promise.all([rolling(store), rolling(beside)]);
        assert.equal(rows[0] + rows[1], 500);
      } finally {
        await beside.close();
      }
      assert.equal((await totalOf(store, teamId)).latency_sum, 2_500n);
      assert.deepEqual(await verifyTeam(store, teamId), { traces: 500, differences: [] });
    });

    test('a long list of names has every name once, in order, whatever is rolled up', async () => {
      const teamId = await newTeam();
      const count = 2 * limits.groupChunkRows + 300;
      const ofName = (i: number) => ({ user_identifier: `u${String(i).padStart(5, '0')}` });
      const traces = Array.from({ length: count }, (_, i) => ofName(i));
      await append(teamId, traces);
      await append(teamId, [ofName(7), ofName(7), ofName(count - 1)]);
      const expected = [
        ['u00007', 3],
        [ofName(count - 1).user_identifier, 2],
        ...traces
          .filter((_, i) => i !== 7 && i !== count - 1)
          .map(({ user_identifier }) => [user_identifier, 1]),
      ];
      for (const rows of [0, 1_500, all]) {
        await store.roll(teamId, rows);
        const groups = await groupsOf(store, teamId, 'user_identifier');
        assert.deepEqual(
          groups.map(({ group, measures }) => [group[0], measures.calls]),
          expected,
        );
        const query: TallyQuery = { ...overviewQuery, groupBy: ['user_identifier'] };
        const { first, rest } = await store.tallies(teamId, query, 2);
        assert.equal(rest, null);
        assert.deepEqual(
          first.map(({ group, measures }) => [group[0], measures.calls]),
          expected.slice(0, 2),
        );
      }
    });

    test('a question that no rollup covers is answered from the traces', async () => {
      const teamId = await newTeam();
      await append(
        teamId,
        Array.from({ length: 5_000 }, (_, i) => ({
          error_type: i % 10 === 0 ? 'timeout' : null,
          user_identifier: `u${i % 3}`,
          started_at: noon + i * 1_000_000,
        })),
      );
      const range = { fromUs: noon + 100 * 1_000_000, toUs: noon + 4_100 * 1_000_000 };
      const query: TallyQuery = {
        filter: { error_type: ['timeout'] },
        groupBy: ['user_identifier', 'error_type'],
        range,
        interval: null,
      };
      const tallies = await talliesOf(store, teamId, query);
      assert.deepEqual(
        tallies.map(({ group, measures }) => [...group, measures.calls]),
        [
          ['u1', 'timeout', 134],
          ['u0', 'timeout', 133],
          ['u2', 'timeout', 133],
        ],
      );
      const everything = await talliesOf(store, teamId, { ...query, range: null });
      assert.equal(
        everything.reduce((sum, { measures }) => sum + measures.calls, 0),
        500,
      );
    });

    test('error types of a range are those of its traces, whether few or many traces failed', async () => {
      for (const [every, count] of [
        [100, 5_000],
        [2, 6_000],
      ] as const) {
        const teamId = await newTeam();
        const traces = Array.from({ length: count }, (_, i) => ({
          status: i % every === 0 ? ('error' as const) : ('success' as const),
          error_type: i % (2 * every) === 0 ? 'timeout' : null,
          started_at: noon + (i % 4_000) * 1_000_000,
        }));
        await append(teamId, traces);
        const range = { fromUs: noon + 100 * 1_000_000, toUs: noon + 3_700 * 1_000_000 };
        for (const asked of [range, null]) {
          const failed = traces.filter(
            ({ status, started_at }) =>
              status === 'error' &&
              (asked === null || (started_at >= asked.fromUs && started_at < asked.toUs)),
          );
          const timeouts = failed.filter(({ error_type }) => error_type !== null);
          const tallies = await talliesOf(store, teamId, {
            filter: { status: ['error'] },
            groupBy: ['error_type'],
            range: asked,
            interval: null,
          });
          const found = new Map(tallies.map(({ group, measures }) => [group[0], measures.calls]));
          assert.deepEqual(
            found,
            new Map([
              [null, failed.length - timeouts.length],
              ['timeout', timeouts.length],
            ]),
          );
        }
      }
    });

    test('a question with too many different answers is refused with a clear error', async () => {
      const teamId = await newTeam();
      await append(
        teamId,
        Array.from({ length: limits.tallyRowsMax + 1 }, (_, i) => ({ session_id: `s${i}` })),
      );
      const query: TallyQuery = { ...overviewQuery, groupBy: ['session_id', 'run_id'] };
      await assert.rejects(store.tallies(teamId, query), { code: 'question_too_wide' });
    });

    test('a team has the time zone that it was created with, and its days follow it', async () => {
      const teamId = await newTeam('Asia/Kathmandu');
      assert.equal(await store.timeZone(teamId), 'Asia/Kathmandu');
      assert.equal(await store.timeZone(await newTeam()), 'UTC');
      // 23:59 and 00:00 in Kathmandu.
      const midnight = us('2026-11-03T18:15:00Z');
      await append(teamId, [{ started_at: midnight - 60_000_000 }, { started_at: midnight }]);
      for (const rows of [0, 1, all]) {
        await store.roll(teamId, rows);
        const days = await talliesOf(store, teamId, { ...overviewQuery, interval: 'day' });
        assert.deepEqual(
          days.map(({ startUs, measures }) => [startUs, measures.calls]),
          [
            [midnight - 86_400_000_000, 1],
            [midnight, 1],
          ],
        );
      }
    });

    test('a rebuild in another time zone answers the old way until it switches, and leaves nothing behind', async () => {
      const teamId = await newTeam();
      const late = us('2026-11-03T23:30:00Z');
      await append(
        teamId,
        Array.from({ length: 3_000 }, (_, i) => ({
          started_at: late,
          user_identifier: `u${i % 9}`,
        })),
      );
      await rollAll(teamId);
      const daily: TallyQuery = { ...overviewQuery, interval: 'day' };
      const dayOf = async () => (await talliesOf(store, teamId, daily))[0]?.startUs;
      assert.equal(await dayOf(), us('2026-11-03T00:00:00Z'));
      const seen: number[] = [];
      await store.rebuild(teamId, 'Europe/Berlin', (rolled, total) => {
        assert.equal(total, 3_000);
        seen.push(rolled);
      });
      assert.ok(seen.length >= 2 && seen.includes(3_000), seen.join());
      assert.equal(await store.timeZone(teamId), 'Europe/Berlin');
      assert.equal(await dayOf(), us('2026-11-03T23:00:00Z'));
      assert.deepEqual(await verifyTeam(store, teamId), { traces: 3_000, differences: [] });
      // A trace that arrives later is rolled up into the new generation.
      await append(teamId, [{ started_at: late }]);
      await rollAll(teamId);
      assert.deepEqual(await verifyTeam(store, teamId), { traces: 3_001, differences: [] });
    });

    test('traces that are written during a rebuild are in every answer', async () => {
      const teamId = await newTeam();
      await append(teamId, Array(4_000).fill({ environment: 'test' }));
      await rollAll(teamId);
      let count = 4_000;
      let isBuilding = true;
      const building = store.rebuild(teamId, 'Pacific/Apia').finally(() => (isBuilding = false));
      while (isBuilding) {
        await append(teamId, [{ environment: 'live' }]);
        count += 1;
        assert.equal((await totalOf(store, teamId)).calls, count);
      }
      await building;
      assert.deepEqual(await verifyTeam(store, teamId), { traces: count, differences: [] });
    });

    test('labels of 255 CJK characters or emoji in every dimension are rolled up', async () => {
      const teamId = await newTeam();
      const labels = ['漢'.repeat(255), '😀'.repeat(255)];
      for (const label of labels) {
        const values = { environment: label, provider: label, model: label, feature_name: label };
        await append(teamId, [{ ...values, user_identifier: label, session_id: label }]);
      }
      await rollAll(teamId);
      for (const field of ['model', 'feature_name', 'environment', 'user_identifier'] as const) {
        const groups = await groupsOf(store, teamId, field);
        assert.deepEqual(new Set(groups.map(({ group }) => group[0])), new Set(labels));
        assert.equal(groups.length, labels.length);
      }
      assert.deepEqual(await verifyTeam(store, teamId), { traces: 2, differences: [] });
    });

    test('sums past 2^63 stay exact', async () => {
      const teamId = await newTeam();
      // A cost of a million dollars is 10^18 pico-dollars, so ten of them exceed 2^63.
      await append(teamId, Array(25).fill({ cost_usd: 1_000_000, latency_ms: 2 ** 31 - 1 }));
      for (const rows of [3, 9, all]) {
        await store.roll(teamId, rows);
        await append(teamId, [{ cost_usd: 0.000000000001 }]);
        const { cost_picos, calls } = await totalOf(store, teamId);
        assert.equal(cost_picos, 25n * 10n ** 18n + BigInt(calls - 25));
      }
    });

    test('a lookup finds every trace with the value, newest first, whatever is rolled up', async () => {
      const teamId = await newTeam();
      const other = await newTeam();
      const count = 3_000;
      const traces = Array.from({ length: count }, (_, i) => ({
        user_identifier: `u${i % 7}`,
        session_id: i % 2 === 0 ? `s${i % 11}` : null,
        run_id: `r${i}`,
      }));
      await append(teamId, traces);
      await append(other, traces.slice(0, 10));
      const seqs = (has: (trace: (typeof traces)[number]) => boolean) =>
        traces.flatMap((trace, i) => (has(trace) ? [i + 1] : [])).toReversed();
      for (const rows of [0, 1_234, all]) {
        await store.roll(teamId, rows);
        assert.deepEqual(
          await store.lookUp(teamId, 'user_identifier', 'u3'),
          seqs((trace) => trace.user_identifier === 'u3'),
        );
        assert.deepEqual(
          await store.lookUp(teamId, 'session_id', 's4', 2_000),
          seqs((trace) => trace.session_id === 's4').filter((seq) => seq < 2_000),
        );
        assert.deepEqual(await store.lookUp(teamId, 'run_id', 'r77'), [78]);
        for (const field of lookupFields) {
          assert.deepEqual(await store.lookUp(teamId, field, 'none'), []);
          // A value of another field is not found.
          const foreign = field === 'user_identifier' ? 'r1' : 'u1';
          assert.deepEqual(await store.lookUp(teamId, field, foreign), []);
        }
      }
    });

    test('a lookup goes on after its last result, over more than one block', async () => {
      const teamId = await newTeam();
      const count = 2 ** lookupBlockBits + 500;
      await append(
        teamId,
        Array.from({ length: count }, (_, i) => ({ session_id: i % 10 === 0 ? 'long' : null })),
      );
      await rollAll(teamId);
      const found: number[] = [];
      for (let before = count + 1; ; before = found.at(-1) ?? 0) {
        const next = await store.lookUp(teamId, 'session_id', 'long', before);
        if (next.length === 0) break;
        assert.ok(next.length <= limits.lookupRowsMax);
        found.push(...next);
      }
      assert.deepEqual(
        found,
        Array.from({ length: Math.ceil(count / 10) }, (_, i) => i * 10 + 1).toReversed(),
      );
    });
  });
}
