import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import type { Trace } from '../../src/core/trace.ts';
import type { TraceInput } from '../../src/core/trace-fields.ts';
import { Failure } from '../../src/errors.ts';
import { limits } from '../../src/limits.ts';
import type { IdempotentRequest, TraceWrite, WriteOutcome } from '../../src/store/trace-writer.ts';
import type { Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { manualClock, totalOf, us } from '../support/service.ts';
import type { ManualClock } from '../support/service.ts';
import type { StoreUnderTest } from './store-contract.ts';

const noon = us('2026-11-04T12:00:00Z');
const lifeUs = limits.idempotencyLifeMs * 1000;

/** What every store must do with idempotent requests, and with the ranges that it returns. */
export function describeIdempotencyContract(
  name: string,
  prepare: () => Promise<StoreUnderTest>,
): void {
  describe(`idempotent requests in the ${name} store`, () => {
    let stage: StoreUnderTest;
    let clock: ManualClock;
    let store: Store;
    let teams = 0;

    before(async () => {
      stage = await prepare();
      clock = manualClock(noon);
      store = await open('server');
    });
    after(async () => {
      await store.close();
      await stage.dispose();
    });

    const open = (role: 'server' | 'tool') => stage.open({ clock: clock.source, role });

    async function newTeam(): Promise<string> {
      clock.set(noon);
      const { team } = await store.ensureTeam(`idempotency-${++teams}`, noon);
      return team.id;
    }

    async function append(teamWrite: TraceWrite, to = store): Promise<WriteOutcome> {
      const [outcome] = await to.append([teamWrite]);
      return outcome ?? assert.fail('no outcome');
    }

    /** The team's models, oldest first. Also verifies the team. */
    async function modelsOf(teamId: string): Promise<string[]> {
      const { first } = await store.page(teamId, { page: 1, limit: 100, omit: new Set() });
      const { traces, differences } = await verifyTeam(store, teamId);
      assert.deepEqual([traces, differences], [first.length, []]);
      assert.equal((await totalOf(store, teamId)).calls, first.length);
      return first.map(({ model }) => model).toReversed();
    }

    test('a second write of the same request stores nothing and returns the range of the first', async () => {
      const teamId = await newTeam();
      await append(write(teamId, [{ model: 'before' }]));
      const request = write(
        teamId,
        [{ model: 'a' }, { model: 'b' }],
        idempotent('k', 'body', '[7]'),
      );
      assert.equal((await append(request)).kind, 'stored');
      await append(write(teamId, [{ model: 'after' }]));
      const replay = { kind: 'replayed', firstSeq: 2, count: 2, rejected: '[7]' };
      for (let i = 0; i < 3; i++) assert.deepEqual(await append(request), replay);
      assert.deepEqual(await modelsOf(teamId), ['before', 'a', 'b', 'after']);
    });

    test('the rejected items of the first reply are returned unchanged', async () => {
      const teamId = await newTeam();
      for (const [i, rejected] of [
        null,
        '',
        '[]',
        'Ärger 😀 \' " \\ \n',
        'x'.repeat(500_000),
      ].entries()) {
        const request = write(teamId, [{ model: 'm' }], idempotent(`k${i}`, 'body', rejected));
        assert.equal((await append(request)).kind, 'stored');
        // The first one's words count, not those of the retry.
        const retry = { ...request, request: idempotent(`k${i}`, 'body', 'other words') };
        const outcome = await append(retry);
        assert.equal(outcome.kind === 'replayed' ? outcome.rejected : outcome.kind, rejected);
      }
    });

    test('of many in one call, and of many concurrent calls, exactly the first is stored', async () => {
      const teamId = await newTeam();
      const request = (key: string) => write(teamId, [{ model: key }], idempotent(key, 'body'));
      const inOneCall = await store.append(Array.from({ length: 20 }, () => request('one call')));
      assert.deepEqual(
        inOneCall.map(({ kind }) => kind),
        ['stored', ...Array.from({ length: 19 }, () => 'replayed')],
      );
      const calls = await Promise.all(
        Array.from({ length: 20 }, (_, i) => store.append([request('many calls')], i < 19)),
      );
      const kinds = calls.flat().map(({ kind }) => kind);
      assert.equal(kinds.filter((kind) => kind === 'stored').length, 1);
      assert.equal(kinds.filter((kind) => kind === 'replayed').length, 19);
      assert.deepEqual(await modelsOf(teamId), ['one call', 'many calls']);
    });

    test('the same key with another body is refused and stores nothing, whichever comes first', async () => {
      const teamId = await newTeam();
      const outcomes = await store.append([
        write(teamId, [{ model: 'first' }], idempotent('k', 'body')),
        write(teamId, [{ model: 'other' }], idempotent('k', 'another body')),
        write(teamId, [{ model: 'first' }], idempotent('k', 'body')),
      ]);
      assert.deepEqual(outcomes.map(codeOf), ['stored', 'idempotency_key_reused', 'replayed']);
      const later = await append(
        write(teamId, [{ model: 'other' }], idempotent('k', 'another body')),
      );
      assert.equal(codeOf(later), 'idempotency_key_reused');
      assert.deepEqual(await modelsOf(teamId), ['first']);
    });

    test('a key belongs to its team', async () => {
      const [mine, other] = [await newTeam(), await newTeam()];
      const outcomes = await store.append([
        write(mine, [{ model: 'mine' }], idempotent('k', 'body')),
        write(other, [{ model: 'other' }], idempotent('k', 'body')),
        write(other, [{ model: 'other' }], idempotent('j', 'another body')),
        write(mine, [{ model: 'mine' }], idempotent('j', 'body')),
        write(other, [{ model: 'other' }], idempotent('k', 'body')),
      ]);
      assert.deepEqual(outcomes.map(codeOf), ['stored', 'stored', 'stored', 'stored', 'replayed']);
      assert.deepEqual(await modelsOf(mine), ['mine', 'mine']);
      assert.deepEqual(await modelsOf(other), ['other', 'other']);
    });

    test('a write without a key is always stored', async () => {
      const teamId = await newTeam();
      await store.append([
        write(teamId, [{ model: 'a' }], idempotent('k', 'body')),
        write(teamId, [{ model: 'a' }]),
        write(teamId, [{ model: 'a' }]),
      ]);
      assert.equal((await modelsOf(teamId)).length, 3);
    });

    test('a write that fails does not use up its key, and its retry in the same call is stored', async () => {
      const teamId = await newTeam();
      // No route lets this through: the store itself must refuse a row that its schema does not hold.
      const poison = write(teamId, [{ model: 'ok' }, { model: 'bad' }], idempotent('k', 'body'));
      Object.assign(poison.drafts[1] ?? {}, { model: null });
      const good = write(teamId, [{ model: 'good' }], idempotent('k', 'body'));
      const neighbour = write(teamId, [{ model: 'neighbour' }], idempotent('n', 'body'));
      assert.equal((await append(poison)).kind, 'failed');
      const outcomes = await store.append([neighbour, poison, neighbour, good, good]);
      assert.deepEqual(
        outcomes.map(({ kind }) => kind),
        ['stored', 'failed', 'replayed', 'stored', 'replayed'],
      );
      assert.deepEqual(await modelsOf(teamId), ['neighbour', 'good']);
      assert.deepEqual(outcomes.slice(2, 5).flatMap(placeOf), [
        { firstSeq: 1, count: 1 },
        { firstSeq: 2, count: 1 },
      ]);
    });

    test('an idempotency key is valid for exactly 24 hours and can then be used again', async () => {
      const teamId = await newTeam();
      const at = async (nowUs: number, body: string): Promise<string> => {
        clock.set(nowUs);
        return codeOf(await append(write(teamId, [{ model: body }], idempotent('k', body))));
      };
      assert.equal(await at(noon, 'first'), 'stored');
      assert.equal(await at(noon + lifeUs - 1, 'first'), 'replayed');
      assert.equal(await at(noon + lifeUs - 1, 'second'), 'idempotency_key_reused');
      assert.equal(await at(noon + lifeUs, 'second'), 'stored');
      assert.equal(await at(noon + 2 * lifeUs - 1, 'second'), 'replayed');
      assert.equal(await at(noon + 2 * lifeUs, 'first'), 'stored');
      assert.deepEqual(await modelsOf(teamId), ['first', 'second', 'first']);
      clock.set(noon);
    });

    test('many keys that expire together do not keep a live one from being found', async () => {
      const teamId = await newTeam();
      const requests = (prefix: string, count: number) =>
        Array.from({ length: count }, (_, i) =>
          write(teamId, [{ model: 'm' }], idempotent(`${prefix}${i}`, 'body')),
        );
      await store.append(requests('old', 3 * limits.idempotencySweepRowsMax));
      clock.set(noon + lifeUs - 1);
      await store.append(requests('live', 5));
      clock.set(noon + lifeUs);
      const again = await store.append([...requests('live', 5), ...requests('old', 5)]);
      const kinds = again.map(({ kind }) => kind);
      assert.deepEqual(kinds, [...Array(5).fill('replayed'), ...Array(5).fill('stored')]);
      clock.set(noon);
    });

    test('an idempotency key survives closing the store, and a tool finds it too', async () => {
      const teamId = await newTeam();
      const request = write(teamId, [{ model: 'm' }], idempotent('k', 'body'));
      assert.equal((await append(request)).kind, 'stored');
      await store.close();
      store = await open('server');
      assert.equal((await append(request)).kind, 'replayed');
      const tool = await open('tool');
      try {
        assert.equal((await append(request, tool)).kind, 'replayed');
        const ofTool = write(teamId, [{ model: 'of the tool' }], idempotent('t', 'body'));
        assert.equal((await append(ofTool, tool)).kind, 'stored');
        assert.equal((await append(ofTool)).kind, 'replayed');
        const both = write(teamId, [{ model: 'both' }], idempotent('b', 'body'));
        const outcomes = await Promise.all([append(both), append(both, tool)]);
        assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ['replayed', 'stored']);
      } finally {
        await tool.close();
      }
      assert.deepEqual(await modelsOf(teamId), ['m', 'of the tool', 'both']);
    });

    test('a range holds its traces in their order, as they were stored', async () => {
      const [teamId, other] = [await newTeam(), await newTeam()];
      const bodies: TraceInput[] = Array.from({ length: 60 }, (_, i) => ({
        model: `m${i}`,
        input: i % 3 === 0 ? `a\u0000b ${'long '.repeat(i * 40)}` : null,
        output: i % 2 === 0 ? '' : '😀',
        cost_usd: i / 7,
      }));
      // Two teams in turns, so that a range which counts the wrong team's traces is seen.
      for (let i = 0; i < 60; i += 6) {
        await store.append([
          write(teamId, bodies.slice(i, i + 6)),
          write(other, [{ model: 'other' }]),
        ]);
      }
      const all = await rangeOf(teamId, 1, 60);
      assert.deepEqual(
        all.map(({ id: _id, teamId: _team, createdAtUs: _at, ...rest }) => rest),
        bodies.map(draftTrace),
      );
      const { first } = await store.page(teamId, { page: 1, limit: 100, omit: new Set() });
      assert.deepEqual(all, first.toReversed());
      for (const [firstSeq, count] of [
        [1, 1],
        [60, 1],
        [7, 20],
        [59, 2],
      ] as const) {
        const part = await rangeOf(teamId, firstSeq, count);
        assert.deepEqual(part, all.slice(firstSeq - 1, firstSeq - 1 + count));
      }
      assert.ok((await rangeOf(other, 1, 10)).every(({ model }) => model === 'other'));
    });

    test('an incomplete range is an error, never fewer traces or those of another team', async () => {
      const [teamId, other, empty] = [await newTeam(), await newTeam(), await newTeam()];
      await store.append([
        write(teamId, [{ model: 'a' }, { model: 'b' }]),
        write(other, [{ model: 'c' }, { model: 'd' }, { model: 'e' }]),
      ]);
      const unknownTeam = '00000000-0000-7000-8000-000000000000';
      for (const [team, firstSeq, count] of [
        [teamId, 2, 2],
        [teamId, 3, 1],
        [teamId, 1, 1000],
        [empty, 1, 1],
        [unknownTeam, 1, 1],
      ] as const) {
        await assert.rejects(
          rangeOf(team, firstSeq, count),
          (error) => error instanceof Failure && error.code === 'store_unavailable',
        );
      }
    });

    async function rangeOf(teamId: string, firstSeq: number, count: number): Promise<Trace[]> {
      return [...(await store.range(teamId, { firstSeq, count }))];
    }
  });
}

function idempotent(
  keyHash: string,
  bodyHash: string,
  rejected: string | null = null,
): IdempotentRequest {
  return { keyHash, bodyHash, rejected };
}

function write(
  teamId: string,
  bodies: readonly TraceInput[],
  request?: IdempotentRequest,
): TraceWrite {
  return { teamId, drafts: bodies.map(draftTrace), ...(request && { request }) };
}

/** The kind of an outcome, or why it was refused. */
function codeOf(outcome: WriteOutcome): string {
  return outcome.kind === 'failed' ? outcome.code : outcome.kind;
}

function placeOf(outcome: WriteOutcome): { firstSeq: number; count: number }[] {
  if (outcome.kind !== 'replayed') return [];
  return [{ firstSeq: outcome.firstSeq, count: outcome.count }];
}
