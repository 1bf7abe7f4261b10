import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import type { Trace } from '../../src/core/trace.ts';
import type { TraceInput } from '../../src/core/trace-fields.ts';
import { makeKey } from '../../src/store/teams-and-keys.ts';
import { payloadNames } from '../../src/core/trace-fields.ts';
import type { PageRequest } from '../../src/store/trace-reader.ts';
import type { Store, StoreOptions } from '../../src/store/store.ts';
import type { TraceWrite, WriteOutcome } from '../../src/store/trace-writer.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { daysOf, groupsOf, manualClock, totalOf, us } from '../support/service.ts';
import type { ManualClock } from '../support/service.ts';
import { describeDamageContract } from './damage-contract.ts';
import { describeRebuildContract } from './rebuild-contract.ts';
import { describeTalliesContract } from './tallies-contract.ts';
import { describeTransferContract } from './transfer-contract.ts';
import { describeCountOnceContract } from './count-once-contract.ts';
import { describeIdempotencyContract } from './idempotency-contract.ts';
import { describeSignInContract } from './sign-in-contract.ts';

export interface StoreUnderTest {
  open(options: StoreOptions): Promise<Store>;
  /** Changes stored bytes behind the store's back. */
  overwriteInput(teamId: string, seq: number, bytes: Uint8Array): Promise<void>;
  /** The same for a narrow column. The value is SQL. */
  overwriteValue(teamId: string, seq: number, column: string, value: string): Promise<void>;
  /** As `--database` names it. */
  database: string;
  /** The generations of a team's rollups and marks. */
  generations(teamId: string): Promise<number[]>;
  /** Keeps other processes from removing the rollups, if the store can, until the returned function is called. */
  holdRollups(teamId: string): Promise<() => Promise<void>>;
  /** Called when all is closed. */
  dispose(): Promise<void>;
}

const noon = us('2026-11-04T12:00:00Z');
const nothing: PageRequest['omit'] = new Set();

/** What every store must do. A new store runs this suite before anything else. */
export function describeStoreContract(name: string, prepare: () => Promise<StoreUnderTest>): void {
  describe(`the ${name} store`, () => {
    let stage: StoreUnderTest;
    let clock: ManualClock;
    let store: Store;
    let jumps: string[];
    let teams = 0;

    before(async () => {
      stage = await prepare();
      clock = manualClock(noon);
      jumps = [];
      store = await open();
    });
    after(async () => {
      await store.close();
      await stage.dispose();
    });

    const open = () =>
      stage.open({
        clock: clock.source,
        role: 'server',
        onClockJump: ({ teamId }) => void jumps.push(teamId),
      });

    async function newTeam(): Promise<string> {
      clock.set(noon);
      const { team } = await store.ensureTeam(`contract-${++teams}`, noon);
      return team.id;
    }

    async function append(teamId: string, ...bodies: TraceInput[]): Promise<WriteOutcome> {
      const [outcome] = await store.append([write(teamId, ...bodies)]);
      return outcome ?? assert.fail('no outcome');
    }

    async function pageOf(
      teamId: string,
      page: number,
      limit: number,
      omit = nothing,
    ): Promise<Trace[]> {
      const { first, rest } = await store.page(teamId, { page, limit, omit });
      const traces = [...first];
      if (rest) for await (const chunk of rest) traces.push(...chunk);
      return traces;
    }

    test('a trace is readable and counted when append resolves', async () => {
      const teamId = await newTeam();
      const outcome = await append(teamId, {
        model: 'm',
        latency_ms: 7,
        cost_usd: 0.25,
        feature_name: 'f',
      });
      assert.equal(outcome.kind, 'stored');
      const [trace] = await pageOf(teamId, 1, 20);
      assert.equal(trace?.id, stampsOf(outcome)[0]?.id);
      assert.deepEqual(await store.trace(teamId, trace?.id ?? ''), trace);
      const { cost_usd, createdAtUs } = (await store.narrow(teamId, trace?.id ?? '')) ?? {};
      assert.deepEqual([cost_usd, createdAtUs], [0.25, trace?.createdAtUs]);
      assert.equal((await totalOf(store, teamId)).calls, 1);
      assert.deepEqual((await groupsOf(store, teamId, 'model'))[0]?.group, ['m']);
      const [feature] = await groupsOf(store, teamId, 'feature_name');
      assert.equal(feature?.measures.cost_picos, 250_000_000_000n);
      assert.deepEqual(
        (await daysOf(store, teamId, noon)).map(({ measures }) => measures.calls),
        [1],
      );
    });

    test('a trace comes back as it was sent, with text of any kind and length', async () => {
      const teamId = await newTeam();
      const body: TraceInput = {
        model: 'модель',
        input: `a\u0000b ${'long '.repeat(5000)}`,
        output: '',
        prompt_tokens: 2 ** 31 - 1,
        completion_tokens: 0,
        latency_ms: 1,
        cost_usd: 1e-7,
        status: 'error',
        error_message: '\u0000',
        feature_name: '😀',
        user_identifier: "'; drop table traces; --",
      };
      await append(teamId, body);
      const [trace] = await pageOf(teamId, 1, 1);
      const { id: _id, teamId: owner, createdAtUs, ...rest } = trace ?? assert.fail('no trace');
      assert.deepEqual(rest, draftTrace(body));
      assert.equal(owner, teamId);
      assert.equal(createdAtUs, noon);
    });

    test('pages are newest first, never overlap, and past the end they are empty', async () => {
      const teamId = await newTeam();
      for (let i = 0; i < 5; i++) {
        await append(teamId, { model: `m${2 * i}` }, { model: `m${2 * i + 1}` });
      }
      const names = async (page: number, limit: number) =>
        (await pageOf(teamId, page, limit)).map(({ model }) => model);
      assert.deepEqual(await names(1, 4), ['m9', 'm8', 'm7', 'm6']);
      assert.deepEqual(await names(3, 4), ['m1', 'm0']);
      assert.deepEqual(await names(4, 4), []);
      assert.deepEqual(await names(999_999_999, 100), []);
      assert.equal((await store.page(teamId, { page: 9, limit: 4, omit: nothing })).total, 10);
    });

    test('omitted payloads are not read, in any combination', async () => {
      const teamId = await newTeam();
      const payloads = { input: 'in', output: 'out', error_message: 'err', metadata: '{"a":"b"}' };
      const draft = { ...draftTrace({ model: 'm', error_message: 'err' }), ...payloads };
      await store.append([{ teamId, drafts: [draft] }]);
      for (let mask = 0; mask < 2 ** payloadNames.length; mask++) {
        const omit = new Set(payloadNames.filter((_, bit) => (mask & (1 << bit)) !== 0));
        const [trace] = await pageOf(teamId, 1, 1, omit);
        assert.deepEqual(Object.fromEntries(payloadNames.map((name) => [name, trace?.[name]])), {
          ...payloads,
          ...Object.fromEntries([...omit].map((name) => [name, null])),
        });
        assert.deepEqual([trace?.model, trace?.status], ['m', 'error']);
      }
    });

    test('a preview is the beginning of each payload, whatever its length, without half a character', async () => {
      const teamId = await newTeam();
      const long = 'many words '.repeat(100_000);
      const noise = Array.from({ length: 300_000 }, () =>
        String.fromCodePoint(0x4e00 + randomInt(20_000)),
      );
      const texts = ['', 'short', `1234567${'😀'.repeat(2000)}`, long, noise.join(''), null];
      for (const input of texts) {
        await append(teamId, { model: 'm', input, output: input, error_message: 'e' });
        for (const previewChars of [1, 8, 1000]) {
          const { first } = await store.page(teamId, {
            page: 1,
            limit: 1,
            omit: nothing,
            previewChars,
          });
          const [trace] = first;
          const cut = input?.slice(0, previewChars).replace(/[\uD800-\uDBFF]$/, '') ?? null;
          assert.deepEqual([trace?.input, trace?.output, trace?.error_message], [cut, cut, 'e']);
        }
      }
      const [whole] = await pageOf(teamId, 2, 1);
      assert.equal(whole?.input, noise.join(''));
    });

    test('previews of large traces come in several chunks and lose none', async () => {
      const teamId = await newTeam();
      const noise = () => randomBytes(400_000).toString('base64');
      for (let i = 0; i < 6; i++) await append(teamId, { model: `m${i}`, input: noise() });
      const request = { page: 1, limit: 10, omit: nothing, previewChars: 10 };
      const { first, rest } = await store.page(teamId, request);
      const models = first.map(({ model }) => model);
      assert.ok(models.length < 6, 'a chunk is bounded by what is stored, not by what is shown');
      for await (const chunk of rest ?? assert.fail('it all came at once')) {
        models.push(...chunk.map(({ model }) => model));
      }
      assert.deepEqual(models, ['m5', 'm4', 'm3', 'm2', 'm1', 'm0']);
    });

    test('a page of large traces comes in several chunks and loses none', async () => {
      const teamId = await newTeam();
      const big = 'x'.repeat(700_000);
      await append(
        teamId,
        ...Array.from({ length: 9 }, (_, i) => ({ model: `m${i}`, input: big })),
      );
      const { first, rest } = await store.page(teamId, { page: 1, limit: 100, omit: nothing });
      const sizes = [first.length];
      const names = first.map(({ model }) => model);
      for await (const chunk of rest ?? assert.fail('it all came at once')) {
        sizes.push(chunk.length);
        names.push(...chunk.map(({ model }) => model));
      }
      assert.ok(sizes.length >= 4, `chunks of ${sizes.join(', ')}`);
      assert.deepEqual(names, ['m8', 'm7', 'm6', 'm5', 'm4', 'm3', 'm2', 'm1', 'm0']);
    });

    test('no team can read traces of another', async () => {
      const [mine, other] = [await newTeam(), await newTeam()];
      const outcome = await append(mine, { model: 'secret', feature_name: 'f' });
      const id = stampsOf(outcome)[0]?.id ?? '';
      assert.equal(await store.trace(other, id), null);
      assert.equal(await store.narrow(other, id), null);
      assert.deepEqual(await pageOf(other, 1, 20), []);
      assert.equal((await totalOf(store, other)).calls, 0);
      assert.deepEqual(await groupsOf(store, other, 'model'), []);
      assert.deepEqual(await groupsOf(store, other, 'feature_name'), []);
      assert.deepEqual(await daysOf(store, other, noon), []);
    });

    test('writes of many teams in one call each get their own sequence and outcome', async () => {
      const ids = await Promise.all(Array.from({ length: 20 }, newTeam));
      const outcomes = await store.append(
        Array.from({ length: 100 }, (_, i) => write(ids[i % 20] ?? '', { model: `m${i}` })),
      );
      assert.equal(outcomes.filter(({ kind }) => kind === 'stored').length, 100);
      for (const [i, teamId] of ids.entries()) {
        const names = (await pageOf(teamId, 1, 100)).map(({ model }) => model);
        assert.deepEqual(
          names,
          [80, 60, 40, 20, 0].map((step) => `m${step + i}`),
        );
      }
    });

    test('a write that fails stores nothing and does not affect others', async () => {
      const [first, second] = [await newTeam(), await newTeam()];
      const poison = { ...write(first, { model: 'ok' }, { model: 'bad' }) };
      // No route lets this through: the store itself must refuse a row that its schema does not hold.
      Object.assign(poison.drafts[1] ?? {}, { model: null });
      const outcomes = await store.append([
        write(first, { model: 'a' }),
        poison,
        write('00000000-0000-7000-8000-000000000000', { model: 'no such team' }),
        write(second, { model: 'b' }),
        write(first, { model: 'c' }),
      ]);
      assert.deepEqual(
        outcomes.map(({ kind }) => kind),
        ['stored', 'failed', 'failed', 'stored', 'stored'],
      );
      assert.deepEqual(
        (await pageOf(first, 1, 9)).map(({ model }) => model),
        ['c', 'a'],
      );
      assert.equal((await totalOf(store, first)).calls, 2);
      assert.deepEqual(
        (await pageOf(second, 1, 9)).map(({ model }) => model),
        ['b'],
      );
      assert.deepEqual((await verifyTeam(store, first)).differences, []);
    });

    test('time follows the sequence while the clock stands or steps back a little', async () => {
      const teamId = await newTeam();
      await append(teamId, { model: 'a' }, { model: 'b' });
      clock.set(noon - 4_000_000);
      await append(teamId, { model: 'c' });
      const times = (await pageOf(teamId, 1, 9)).map(({ createdAtUs }) => createdAtUs - noon);
      assert.deepEqual(times, [2, 1, 0]);
      assert.equal(jumps.includes(teamId), false);
    });

    test('after a jump of the clock the wall clock counts, with a warning', async () => {
      const teamId = await newTeam();
      clock.set(us('2027-11-04T12:00:00Z'));
      await append(teamId, { model: 'a year ahead' });
      clock.set(noon);
      await append(teamId, { model: 'back again' });
      const [newest, oldest] = await pageOf(teamId, 1, 9);
      assert.equal(newest?.createdAtUs, noon);
      assert.equal(oldest?.model, 'a year ahead');
      assert.ok(jumps.includes(teamId));
      assert.deepEqual((await verifyTeam(store, teamId)).differences, []);
    });

    test('groups come by calls descending, then by name as UTF-8 sorts it', async () => {
      const teamId = await newTeam();
      const names = ['b', 'a', 'c', 'c', 'Z', '\uFF5E', '😀'];
      await append(teamId, ...names.map((model) => ({ model })));
      const keys = (await groupsOf(store, teamId, 'model')).map(({ group }) => group[0]);
      assert.deepEqual(keys, ['c', 'Z', 'a', 'b', '\uFF5E', '😀']);
    });

    test('sums are kept per user', async () => {
      const teamId = await newTeam();
      await append(
        teamId,
        { model: 'm', user_identifier: 'u', cost_usd: 2 },
        { model: 'm', user_identifier: 'u' },
      );
      const users = await groupsOf(store, teamId, 'user_identifier');
      assert.deepEqual(
        users.map(({ group, measures }) => [group, measures.calls, measures.cost_picos]),
        [[['u'], 2, 2_000_000_000_000n]],
      );
    });

    test('the largest numbers allowed add up without loss, in one write and past 2^53', async () => {
      const teamId = await newTeam();
      const most = 2 ** 31 - 1;
      const body = {
        model: 'm',
        prompt_tokens: most,
        completion_tokens: most,
        latency_ms: most,
        // Odd, so that a sum of doubles would go wrong past 2^53.
        cost_usd: 999_999.999999,
      };
      await append(teamId, ...Array.from({ length: 20_000 }, () => body));
      for (let i = 0; i < 3; i++) await append(teamId, { model: 'm', cost_usd: 0.000001 });
      const total = await totalOf(store, teamId);
      assert.equal(total.prompt_tokens, 20_000n * BigInt(most));
      assert.equal(total.latency_sum, 20_000n * BigInt(most));
      assert.equal(total.cost_picos, (20_000n * 999_999_999_999n + 3n) * 1_000_000n);
      assert.deepEqual((await verifyTeam(store, teamId)).differences, []);
    });

    test('ensureTeam creates a team only once', async () => {
      const made = await Promise.all(
        Array.from({ length: 5 }, () => store.ensureTeam('once', noon)),
      );
      assert.equal(new Set(made.map(({ team }) => team.id)).size, 1);
      assert.equal(made.filter(({ created }) => created).length, 1);
      assert.equal((await store.findTeam('once'))?.id, made[0]?.team.id);
      assert.equal((await store.findTeam(made[0]?.team.id ?? ''))?.name, 'once');
      assert.equal(await store.findTeam('never'), null);
    });

    test('keys are found by their hash, expire by rotation and end by revocation', async () => {
      const teamId = await newTeam();
      const wishes = { name: 'ci', scope: 'ingest' as const, nowUs: noon, expiresAtUs: null };
      const old = makeKey(wishes);
      const next = makeKey(wishes);
      await store.createKey(teamId, old.record);
      assert.equal((await store.findKeyByHash(old.record.hash))?.teamId, teamId);
      assert.equal(await store.findKeyByHash('0'.repeat(64)), null);
      assert.equal(await store.rotateKey(old.record.id, next.record, noon + 5), true);
      const late = makeKey(wishes);
      assert.equal(await store.rotateKey(old.record.id, late.record, noon + 6), false);
      assert.equal(await store.findKey(late.record.id), null);
      assert.equal((await store.findKey(old.record.id))?.expiresAtUs, noon + 5);
      assert.deepEqual(await store.findKeyByHash(old.record.hash), {
        id: old.record.id,
        teamId,
        scope: 'ingest',
        expiresAtUs: noon + 5,
        revokedAtUs: null,
      });
      assert.equal((await store.findKeyByHash(next.record.hash))?.scope, 'ingest');
      assert.equal(await store.revokeKey(next.record.id, noon + 9), true);
      assert.equal(await store.revokeKey(next.record.id, noon + 9), false);
      assert.equal((await store.findKeyByHash(next.record.hash))?.revokedAtUs, noon + 9);
      assert.deepEqual(
        (await store.keys(teamId)).map(({ id }) => id).sort(),
        [old.record.id, next.record.id].sort(),
      );
      const summary = (await store.teams(noon + 6)).find(({ id }) => id === teamId);
      assert.equal(summary?.liveKeys, 0);
    });

    test('a rotation of a key that does not exist changes nothing', async () => {
      const { record } = makeKey({ name: null, scope: 'full', nowUs: noon, expiresAtUs: null });
      assert.equal(await store.rotateKey('key_none', record, noon), false);
      assert.equal(await store.findKey(record.id), null);
    });

    test('the last use of a key is stored soon after it', async () => {
      const teamId = await newTeam();
      const { record } = makeKey({ name: null, scope: 'full', nowUs: noon, expiresAtUs: null });
      await store.createKey(teamId, record);
      store.noteKeyUse(record.id, noon + 60);
      store.noteKeyUse(record.id, noon + 30);
      const lastUse = async () => (await store.findKey(record.id))?.lastUsedAtUs ?? null;
      assert.equal(await eventually('the last use of the key', 120_000, lastUse, 10), noon + 60);
    });

    test('everything is still there after the store was closed and opened again', async () => {
      const teamId = await newTeam();
      const stored = await append(teamId, { model: 'm', input: 'kept' });
      await store.close();
      store = await open();
      await store.ping();
      assert.equal((await store.trace(teamId, stampsOf(stored)[0]?.id ?? ''))?.input, 'kept');
      await append(teamId, { model: 'n' });
      assert.deepEqual(
        (await pageOf(teamId, 1, 9)).map(({ model }) => model),
        ['n', 'm'],
      );
      assert.deepEqual((await verifyTeam(store, teamId)).differences, []);
      assert.deepEqual(await store.checkStorage(), []);
    });

    test('times that are set from inside never run backwards', async () => {
      const teamId = await newTeam();
      await append(teamId, { model: 'live' });
      const drafts = [draftTrace({ model: 'demo' })];
      await store.append([{ teamId, drafts, timesUs: [noon - 86_400_000_000] }]);
      const [demo, live] = await pageOf(teamId, 1, 9);
      assert.equal((demo?.createdAtUs ?? 0) - (live?.createdAtUs ?? 0), 1);
      assert.equal(jumps.includes(teamId), false);
    });

    test('times that are set from inside spread traces over days', async () => {
      const teamId = await newTeam();
      const times = [noon - 3 * 86_400_000_000, noon - 2 * 86_400_000_000, noon];
      const drafts = times.map((_, i) => draftTrace({ model: `m${i}` }));
      await store.append([{ teamId, drafts, timesUs: times }]);
      assert.deepEqual(
        (await pageOf(teamId, 1, 9)).map(({ createdAtUs }) => createdAtUs),
        times.toReversed(),
      );
      const midnight = us('2026-11-04T00:00:00Z');
      assert.deepEqual(
        (await daysOf(store, teamId, noon)).map(({ startUs }) => startUs),
        [midnight - 3 * 86_400_000_000, midnight - 2 * 86_400_000_000, midnight],
      );
    });
  });
  describeIdempotencyContract(name, prepare);
  describeCountOnceContract(name, prepare);
  describeTransferContract(name, prepare);
  describeDamageContract(name, prepare);
  describeTalliesContract(name, prepare);
  describeRebuildContract(name, prepare);
  describeSignInContract(name, prepare);
}

function write(teamId: string, ...bodies: TraceInput[]): TraceWrite {
  return { teamId, drafts: bodies.map(draftTrace) };
}

function stampsOf(outcome: WriteOutcome) {
  return outcome.kind === 'stored' ? outcome.stamps : assert.fail(JSON.stringify(outcome));
}
