import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import type { TraceInput } from '../../src/core/trace-fields.ts';
import { OperatorError } from '../../src/errors.ts';
import { limits } from '../../src/limits.ts';
import type { PackedTrace } from '../../src/store/transfer.ts';
import { makeKey } from '../../src/store/teams-and-keys.ts';
import type { IdempotentRequest } from '../../src/store/trace-writer.ts';
import type { Store } from '../../src/store/store.ts';
import type { Team } from '../../src/store/teams-and-keys.ts';
import { emptyCounter } from '../../src/store/sequencer.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { manualClock, totalOf, us } from '../support/service.ts';
import type { ManualClock } from '../support/service.ts';
import type { StoreUnderTest } from './store-contract.ts';

const noon = us('2026-11-04T12:00:00Z');
const lifeUs = limits.idempotencyLifeMs * 1000;

/** What every store must do when everything in it moves to another one, or from another one into it. */
export function describeTransferContract(
  name: string,
  prepare: () => Promise<StoreUnderTest>,
): void {
  describe(`transfers of the ${name} store`, () => {
    let stages: StoreUnderTest[] = [];
    let clock: ManualClock;
    let from: Store;
    let to: Store;
    let teams = 0;

    before(async () => {
      clock = manualClock(noon);
      stages = [await prepare(), await prepare()];
      [from, to] = [await open(0, 'tool'), await open(1, 'tool')];
    });
    after(async () => {
      await from.close();
      await to.close();
      for (const stage of stages) await stage.dispose();
    });

    const open = (at: number, role: 'server' | 'tool'): Promise<Store> =>
      (stages[at] ?? assert.fail()).open({ clock: clock.source, role });

    /** A team of the source that the target has too, without its traces. */
    async function newTeam(): Promise<Team> {
      clock.set(noon);
      const { team } = await from.ensureTeam(`house-${++teams}`, noon - teams);
      await to.takeTeam(team);
      return team;
    }

    async function append(
      store: Store,
      teamId: string,
      bodies: TraceInput[],
      request?: IdempotentRequest,
    ) {
      const drafts = bodies.map(draftTrace);
      const [outcome] = await store.append([{ teamId, drafts, ...(request && { request }) }]);
      return outcome ?? assert.fail('no outcome');
    }

    /** A team with traces m1, m2 … in the source, and they as they lie there. */
    async function filledTeam(count: number): Promise<{ team: Team; traces: PackedTrace[] }> {
      const team = await newTeam();
      await append(from, team.id, numbered(count));
      return { team, traces: [...(await from.packedTraces(team.id, 1))] };
    }

    async function assertHolds(teamId: string, expected: readonly PackedTrace[]): Promise<void> {
      const [firstSeq, count] = [expected[0]?.seq ?? 1, expected.length];
      const counter = await to.counter(teamId);
      const lastSeq = firstSeq + count - 1;
      assert.deepEqual([counter.firstSeq, counter.lastSeq], [firstSeq, lastSeq]);
      const found = await to.range(teamId, { firstSeq, count });
      assert.deepEqual(
        found.map(({ id, createdAtUs, model }) => [id, createdAtUs, model]),
        expected.map(({ id, createdAtUs, model }) => [id, createdAtUs, model]),
      );
      assert.equal((await totalOf(to, teamId)).calls, count);
      assert.deepEqual(await verifyTeam(to, teamId), { traces: count, differences: [] });
    }

    test('a team is transferred unchanged and only once, and never replaces another of the same name', async () => {
      const team = await newTeam();
      assert.deepEqual(await to.findTeam(team.name), team);
      await to.takeTeam(team);
      await to.takeTeam(team);
      const same = (await to.teams(noon)).filter(({ name: found }) => found === team.name);
      assert.equal(same.length, 1);
      const other = { ...team, id: '00000000-0000-7000-8000-000000000000' };
      await assert.rejects(to.takeTeam(other), (error) => {
        assert.ok(error instanceof OperatorError);
        assert.ok(error.message.includes(`another team named "${team.name}"`), error.message);
        return true;
      });
      assert.equal(await to.findTeam(other.id), null);
      assert.deepEqual(await to.findTeam(team.name), team);
    });

    test('a team without traces has an empty range', async () => {
      const { id } = await newTeam();
      for (const store of [from, to]) {
        assert.deepEqual(await store.counter(id), emptyCounter);
        assert.deepEqual(await store.packedTraces(id, 1), []);
        assert.deepEqual(await store.storedRequests(id, noon), []);
      }
      assert.deepEqual(await to.takeTraces(id, []), { kind: 'taken' });
      await to.takeRequests(id, []);
      assert.deepEqual(await to.counter(id), emptyCounter);
    });

    test('traces keep their ids, times and numbers, and are counted', async () => {
      const { team, traces } = await filledTeam(7);
      assert.deepEqual(
        traces.map(({ seq, model }) => [seq, model]),
        numbered(7).map(({ model }, i) => [i + 1, model]),
      );
      assert.deepEqual(await to.takeTraces(team.id, traces.slice(0, 3)), { kind: 'taken' });
      await assertHolds(team.id, traces.slice(0, 3));
      assert.deepEqual(await to.takeTraces(team.id, traces.slice(3)), { kind: 'taken' });
      await assertHolds(team.id, traces);
    });

    test('traces that do not follow the last one are not taken, and the last sequence number is returned', async () => {
      const { team, traces } = await filledTeam(9);
      await to.takeTraces(team.id, traces.slice(0, 4));
      const elsewhere = { kind: 'not-next', lastSeq: 4 };
      // Again, with an overlap, after a gap.
      for (const begin of [0, 2, 3, 5, 8]) {
        assert.deepEqual(await to.takeTraces(team.id, traces.slice(begin)), elsewhere, `${begin}`);
      }
      await assertHolds(team.id, traces.slice(0, 4));
      assert.deepEqual(await to.takeTraces(team.id, traces.slice(4)), { kind: 'taken' });
      await assertHolds(team.id, traces);
    });

    test('of two transfers of the same traces at the same time, one succeeds', async () => {
      const { team, traces } = await filledTeam(50);
      const beside = await open(1, 'tool');
      try {
        const kinds = await Promise.all(
          [to, beside, to, beside].map(async (store) => {
            return (await store.takeTraces(team.id, traces)).kind;
          }),
        );
        assert.deepEqual(kinds.sort(), ['not-next', 'not-next', 'not-next', 'taken']);
      } finally {
        await beside.close();
      }
      await assertHolds(team.id, traces);
    });

    test('a sequence that no longer begins at 1 keeps its numbers', async () => {
      const { team, traces } = await filledTeam(9);
      const kept = traces.slice(4);
      assert.deepEqual(await to.takeTraces(team.id, kept), { kind: 'taken' });
      await assertHolds(team.id, kept);
    });

    test('if one trace cannot be stored, none is', async () => {
      const { team, traces } = await filledTeam(6);
      await to.takeTraces(team.id, traces.slice(0, 2));
      const [third, fourth] = [traces[2] ?? assert.fail(), traces[3] ?? assert.fail()];
      const broken = { ...fourth, id: third.id };
      await assert.rejects(to.takeTraces(team.id, [third, broken]));
      await assertHolds(team.id, traces.slice(0, 2));
      assert.deepEqual(await to.takeTraces(team.id, traces.slice(2)), { kind: 'taken' });
      await assertHolds(team.id, traces);
    });

    test('writes after a transfer continue the sequence and the time', async () => {
      const { team, traces } = await filledTeam(3);
      await to.takeTraces(team.id, traces);
      // As if the clock of the new machine were a little behind.
      clock.set(noon - 1_000_000);
      assert.equal((await append(to, team.id, [{ model: 'new' }])).kind, 'stored');
      const [last, next] = await to.range(team.id, { firstSeq: 3, count: 2 });
      assert.equal(next?.model, 'new');
      assert.ok((next?.createdAtUs ?? 0) > (last?.createdAtUs ?? Infinity));
      assert.deepEqual(await verifyTeam(to, team.id), { traces: 4, differences: [] });
    });

    test('traces come a bounded number and a bounded number of bytes at a time, without a gap', async () => {
      const many = await newTeam();
      await append(from, many.id, numbered(limits.moveRowsMax + 1));
      assert.equal((await from.packedTraces(many.id, 1)).length, limits.moveRowsMax);
      const rest = await from.packedTraces(many.id, limits.moveRowsMax + 1);
      assert.deepEqual(
        rest.map(({ seq }) => seq),
        [limits.moveRowsMax + 1],
      );
      assert.deepEqual(await from.packedTraces(many.id, limits.moveRowsMax + 2), []);

      const large = await newTeam();
      const bytes = Math.ceil(limits.moveBytesMax / 3);
      const input = randomBytes(bytes / 2).toString('hex');
      await append(
        from,
        large.id,
        numbered(8).map((body) => ({ ...body, input })),
      );
      const sizes: number[] = [];
      for (let seq = 1; ; seq += sizes.at(-1) ?? 0) {
        const chunk = await from.packedTraces(large.id, seq);
        if (chunk.length === 0) break;
        assert.deepEqual(
          chunk.map((trace) => trace.seq),
          chunk.map((_, i) => seq + i),
        );
        assert.deepEqual(await to.takeTraces(large.id, chunk), { kind: 'taken' });
        sizes.push(chunk.length);
      }
      assert.equal(
        sizes.reduce((sum, size) => sum + size),
        8,
      );
      assert.ok(sizes.length >= 2 && Math.max(...sizes) <= 6, `chunks of ${sizes.join(', ')}`);
      const [moved] = await to.range(large.id, { firstSeq: 8, count: 1 });
      assert.equal(moved?.input, input);
    });

    test('idempotency keys that have not expired are transferred, and no others', async () => {
      const { id } = await newTeam();
      await append(from, id, numbered(2), idempotent('old', '[1]'));
      clock.set(noon + 1000);
      await append(from, id, numbered(3), idempotent('new', null));
      assert.equal((await from.storedRequests(id, noon)).length, 2);
      const known = await from.storedRequests(id, noon + lifeUs);
      assert.deepEqual(known, [
        { ...idempotent('new', null), firstSeq: 3, count: 3, expiresAtUs: noon + 1000 + lifeUs },
      ]);
      await to.takeTraces(id, await from.packedTraces(id, 1));
      for (let i = 0; i < 2; i++) await to.takeRequests(id, known);
      assert.deepEqual(await to.storedRequests(id, noon), known);
      const replay = { kind: 'replayed', firstSeq: 3, count: 3, rejected: null };
      assert.deepEqual(await append(to, id, numbered(3), idempotent('new', 'else')), replay);
      assert.equal((await append(to, id, numbered(2), idempotent('old', '[1]'))).kind, 'stored');
      assert.deepEqual(await verifyTeam(to, id), { traces: 7, differences: [] });
    });

    test('a request that replaced an expired one with the same key also replaces it in a second transfer', async () => {
      const { id } = await newTeam();
      await append(from, id, [{ model: 'a' }], idempotent('k', 'first'));
      await to.takeTraces(id, await from.packedTraces(id, 1));
      await to.takeRequests(id, await from.storedRequests(id, noon));
      clock.set(noon + lifeUs);
      await append(from, id, [{ model: 'b' }], idempotent('k', 'second'));
      await to.takeTraces(id, await from.packedTraces(id, 2));
      await to.takeRequests(id, await from.storedRequests(id, noon + lifeUs));
      const replay = { kind: 'replayed', firstSeq: 2, count: 1, rejected: 'second' };
      assert.deepEqual(await append(to, id, [{ model: 'b' }], idempotent('k', 'second')), replay);
    });

    test('API keys are transferred with all their fields, and a second transfer updates them', async () => {
      const { id: teamId } = await newTeam();
      const [plain, next, ended] = [
        makeKey({ name: null, scope: 'full', nowUs: noon, expiresAtUs: null }).record,
        makeKey({ name: 'Ärger 😀', scope: 'ingest', nowUs: noon + 1, expiresAtUs: noon + 9 })
          .record,
        makeKey({ name: 'ci', scope: 'read', nowUs: noon + 2, expiresAtUs: noon - 5 }).record,
      ];
      const moved = async (store: Store) =>
        (await store.keys(null)).filter((key) => key.teamId === teamId);
      for (const key of [plain, ended]) await from.createKey(teamId, key);
      await from.revokeKey(ended.id, noon + 3);
      await to.takeKeys(await moved(from));
      assert.deepEqual(await moved(to), await moved(from));
      assert.equal((await to.findKeyByHash(plain.hash))?.id, plain.id);

      await from.rotateKey(plain.id, next, noon + 100);
      await from.takeKeys(
        (await moved(from)).map((key) => ({ ...key, lastUsedAtUs: key.createdAtUs + 7 })),
      );
      for (let i = 0; i < 2; i++) await to.takeKeys(await moved(from));
      const keys = await moved(to);
      assert.deepEqual(keys, await moved(from));
      assert.deepEqual(
        keys.map(({ hash, replacedBy, expiresAtUs, revokedAtUs, lastUsedAtUs }) => [
          hash,
          replacedBy,
          expiresAtUs,
          revokedAtUs,
          lastUsedAtUs,
        ]),
        [
          [plain.hash, next.id, noon + 100, null, noon + 7],
          [next.hash, null, noon + 9, null, noon + 8],
          [ended.hash, null, noon - 5, noon + 3, noon + 9],
        ],
      );
      // A use that was noted later than the one that comes is the one that counts.
      await to.takeKeys(keys.map((key) => ({ ...key, lastUsedAtUs: noon })));
      assert.deepEqual(await moved(to), keys);
    });

    test('a running server is reported until it has stopped, and other commands are not', async () => {
      const stage = await prepare();
      const options = { clock: clock.source };
      const server = await stage.open({ ...options, role: 'server' });
      let isServing = true;
      const tools = [
        await stage.open({ ...options, role: 'tool' }),
        await stage.open({ ...options, role: 'tool' }),
      ] as const;
      try {
        assert.match((await tools[0].claim()) ?? '', /^(a server|servers with \d+ connections?)$/);
        isServing = false;
        await server.close();
        // A database may notice a moment later that a connection is gone.
        const isGone = async () => (await tools[0].claim()) === null;
        await eventually('a store without a server', 120_000, isGone, 10);
      } finally {
        if (isServing) await server.close();
        for (const tool of tools) await tool.close();
      }
      await (await stage.open({ ...options, role: 'server' })).close();
      await stage.dispose();
    });
  });
}

function numbered(count: number): { model: string; cost_usd: number }[] {
  return Array.from({ length: count }, (_, i) => ({ model: `m${i + 1}`, cost_usd: i / 1e6 }));
}

function idempotent(key: string, rejected: string | null): IdempotentRequest {
  return { keyHash: key, bodyHash: `body of ${key}`, rejected };
}
