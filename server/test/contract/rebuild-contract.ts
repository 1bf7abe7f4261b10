import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { draftTrace } from '../../src/core/trace.ts';
import { OperatorError } from '../../src/errors.ts';
import type { Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { manualClock, totalOf, us } from '../support/service.ts';
import type { StoreUnderTest } from './store-contract.ts';

const noon = us('2026-11-04T12:00:00Z');
const withinMs = 60_000;
const rebuildChild = fileURLToPath(new URL('../store/rebuild-until-killed.ts', import.meta.url));

/** What every store must do if two processes rebuild the rollups of one team. */
export function describeRebuildContract(
  name: string,
  prepare: () => Promise<StoreUnderTest>,
): void {
  describe(`rebuilds of the ${name} store`, () => {
    let stage: StoreUnderTest;
    let store: Store;
    let beside: Store;
    let teams = 0;

    before(async () => {
      stage = await prepare();
      const options = { clock: manualClock(noon).source, rolling: 'manual' } as const;
      store = await stage.open({ ...options, role: 'server' });
      beside = await stage.open({ ...options, role: 'tool' });
    });
    after(async () => {
      await beside.close();
      await store.close();
      await stage.dispose();
    });

    async function teamWith(count: number): Promise<string> {
      const { team } = await store.ensureTeam(`rebuilt-${++teams}`, noon);
      await append(team.id, count);
      await store.roll(team.id, count);
      return team.id;
    }

    async function append(teamId: string, count: number): Promise<void> {
      const drafts = Array.from({ length: count }, (_, i) =>
        draftTrace({ model: 'm', user_identifier: `u${i}`, feature_name: `f${i % 7}` }),
      );
      const [outcome] = await store.append([{ teamId, drafts }]);
      assert.equal(outcome?.kind, 'stored');
    }

    /** Writes and rolls until the work is done. Every answer must contain every trace. */
    async function beWrittenTo(
      teamId: string,
      count: number,
      work: Promise<unknown>,
    ): Promise<number> {
      let written = count;
      let isDone = false;
      const done = work.finally(() => (isDone = true));
      const untilMs = performance.now() + withinMs;
      while (!isDone) {
        assert.ok(performance.now() < untilMs, 'the rebuilds do not end');
        await append(teamId, 5);
        written += 5;
        await store.roll(teamId, 3);
        await store.roll(teamId, 3);
        assert.equal((await totalOf(store, teamId)).calls, written);
        assert.equal((await totalOf(beside, teamId)).calls, written);
      }
      await done;
      return written;
    }

    async function assertOnlyActive(teamId: string): Promise<void> {
      const { generation } = await store.marks(teamId);
      assert.deepEqual(await stage.generations(teamId), [generation]);
    }

    const zones = ['Asia/Kathmandu', 'America/New_York', 'Asia/Tokyo', 'Europe/Berlin'];

    test('two rebuilds for one time zone at once lose no trace, and leave one generation', async () => {
      const teamId = await teamWith(2_000);
      let count = 2_000;
      for (const [i, zone] of zones.entries()) {
        // The second one starts at another moment of the first each time.
        const started = Promise.withResolvers<void>();
        let steps = 0;
        const first = store.rebuild(teamId, zone, () => {
          if (steps++ === i) started.resolve();
        });
        const second = Promise.race([started.promise, first]).then(() =>
          beside.rebuild(teamId, zone),
        );
        count = await beWrittenTo(teamId, count, Promise.all([first, second]));
        assert.equal(await store.timeZone(teamId), zone);
        assert.deepEqual(await verifyTeam(store, teamId), { traces: count, differences: [] });
        await assertOnlyActive(teamId);
      }
    });

    test('of two rebuilds for different time zones at once, one that fails says so and changes nothing', async () => {
      const teamId = await teamWith(2_000);
      let count = 2_000;
      for (const [i, zone] of zones.entries()) {
        const other = zones[(i + 1) % zones.length] ?? '';
        const started = Promise.withResolvers<void>();
        let steps = 0;
        const first = store.rebuild(teamId, zone, () => {
          if (steps++ === i) started.resolve();
        });
        const second = Promise.race([started.promise, first.catch(() => {})]).then(() =>
          beside.rebuild(teamId, other),
        );
        const both = Promise.allSettled([first, second]);
        count = await beWrittenTo(teamId, count, both);
        const [ours, theirs] = await both;
        // Later rebuilds replace earlier ones.
        assert.equal(theirs.status, 'fulfilled', JSON.stringify(theirs));
        assert.equal(await store.timeZone(teamId), other);
        if (ours.status === 'rejected') {
          assert.ok(ours.reason instanceof OperatorError, String(ours.reason));
          assert.match(ours.reason.message, /^Another rebuild of this team is running\./);
        }
        assert.deepEqual(await verifyTeam(store, teamId), { traces: count, differences: [] });
        await assertOnlyActive(teamId);
      }
    });

    /** A process that rebuilds and is killed, either after some steps or when it has switched. This thread waits for it. */
    function rebuildUntilKilled(teamId: string, timeZone: string, when: '1' | 'switched'): void {
      const args = [rebuildChild, stage.database, teamId, timeZone, when];
      const { signal, stderr } = spawnSync(process.execPath, args, {
        encoding: 'utf8',
        timeout: withinMs,
        killSignal: 'SIGTERM',
      });
      assert.equal(signal, 'SIGKILL', stderr);
    }

    test('a rebuild whose generation another time zone has replaced fails and does not switch to the other one', async () => {
      const teamId = await teamWith(500);
      let steps = 0;
      const first = store.rebuild(teamId, 'Asia/Tokyo', () => {
        if (++steps === 1) rebuildUntilKilled(teamId, 'Pacific/Apia', '1');
      });
      await assert.rejects(first, { message: /^Another rebuild of this team is running\./ });
      assert.equal(await store.timeZone(teamId), 'UTC');
      assert.equal((await totalOf(store, teamId)).calls, 500);
      await store.rebuild(teamId, 'Pacific/Apia');
      assert.deepEqual(await verifyTeam(store, teamId), { traces: 500, differences: [] });
      await assertOnlyActive(teamId);
    });

    test('rollups that a killed rebuild has replaced but not removed are removed on request, and by the next rebuild', async () => {
      for (const by of ['request', 'rebuild'] as const) {
        const teamId = await teamWith(2_000);
        const release = await stage.holdRollups(teamId);
        rebuildUntilKilled(teamId, 'Asia/Tokyo', 'switched');
        await release();
        assert.equal(await store.timeZone(teamId), 'Asia/Tokyo');
        assert.equal((await stage.generations(teamId)).length, 2, 'the old rows are not there');
        if (by === 'request') await beside.removeOldRollups(teamId);
        else await beside.rebuild(teamId, 'Asia/Tokyo');
        await assertOnlyActive(teamId);
        assert.deepEqual(await verifyTeam(store, teamId), { traces: 2_000, differences: [] });
      }
    });
  });
}
