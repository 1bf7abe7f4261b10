import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import type { Trace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import type { Store } from '../../src/store/store.ts';
import { examineTeam, verifyTeam } from '../../src/tools/verify.ts';
import { flipBytes } from '../support/store-place.ts';
import type { StoreUnderTest } from './store-contract.ts';

const long = 'Some text that is worth compressing. '.repeat(100);

const bad: [column: string, value: string, finding: string][] = [
  ['run_id', `'${'ab'.repeat(5000)}'`, 'run_id must be at most 255 characters long'],
  ['model', "''", 'model must not be empty'],
  [
    'user_identifier',
    `'a${String.fromCharCode(10)}b'`,
    'user_identifier must not contain control characters',
  ],
  ['latency_ms', '-1', 'latency_ms must be at least 0'],
  ['cost_usd', '1e7', 'cost_usd must be at most 1000000'],
  ['cache_read_tokens', '5', 'cache_read_tokens must not be more than prompt_tokens'],
  [
    'started_at_us',
    '1',
    "started_at must be from 2000-01-01 to 24 hours ahead of the server's clock",
  ],
];

/** What every store must do with payloads that were damaged on its disk. */
export function describeDamageContract(name: string, prepare: () => Promise<StoreUnderTest>): void {
  describe(`damaged payloads in the ${name} store`, () => {
    let stage: StoreUnderTest;
    let store: Store;
    let teams = 0;

    before(async () => {
      stage = await prepare();
      store = await stage.open({ clock: { kind: 'system' }, role: 'server' });
    });
    after(async () => {
      await store.close();
      await stage.dispose();
    });

    async function teamWith(count: number, text: string): Promise<string> {
      const { team } = await store.ensureTeam(`damage-${++teams}`, 1);
      const drafts = Array.from({ length: count }, (_, i) =>
        draftTrace({
          model: `m${i + 1}`,
          prompt_tokens: 4,
          input: `${i} ${text}`,
          output: `${i} out ${text}`,
        }),
      );
      await store.append([{ teamId: team.id, drafts }]);
      return team.id;
    }

    async function storedInput(teamId: string, seq: number): Promise<Uint8Array> {
      const [trace] = await store.packedTraces(teamId, seq);
      return trace?.input ?? assert.fail('there is no input');
    }

    async function damageInput(teamId: string, seq: number): Promise<void> {
      const bytes = await storedInput(teamId, seq);
      await stage.overwriteInput(teamId, seq, flipBytes(bytes, bytes.length >> 1, 4));
    }

    async function pageOf(teamId: string): Promise<readonly Trace[]> {
      const { first, rest } = await store.page(teamId, { page: 1, limit: 100, omit: new Set() });
      const traces = [...first];
      if (rest) for await (const chunk of rest) traces.push(...chunk);
      return traces;
    }

    test('flipped bytes of a compressed payload mark its trace, and its neighbours are whole', async () => {
      const teamId = await teamWith(3, long);
      const before = await pageOf(teamId);
      await damageInput(teamId, 2);
      const [newest, middle, oldest] = before;
      const marked = { ...middle, input: null, output: null, damaged: ['input', 'output'] };
      assert.deepEqual(await pageOf(teamId), [newest, marked, oldest]);
      assert.deepEqual(await store.trace(teamId, middle?.id ?? ''), marked);
      assert.deepEqual(await store.range(teamId, { firstSeq: 1, count: 3 }), [
        oldest,
        marked,
        newest,
      ]);
      assert.ok(newest && !('damaged' in newest), 'the mark is there only if something is damaged');
    });

    test('every single flipped byte of a compressed payload is noticed', async () => {
      const teamId = await teamWith(1, long);
      const bytes = await storedInput(teamId, 1);
      assert.ok(bytes.length < long.length / 2, 'the payload is not compressed');
      const [whole] = await pageOf(teamId);
      for (let at = 0; at < bytes.length; at++) {
        await stage.overwriteInput(teamId, 1, flipBytes(bytes, at, 1));
        assert.deepEqual((await pageOf(teamId))[0]?.damaged, ['input', 'output'], `byte ${at}`);
      }
      await stage.overwriteInput(teamId, 1, bytes);
      assert.deepEqual(await pageOf(teamId), [whole]);
    });

    test('a short payload that is no longer valid UTF-8 is noticed', async () => {
      const teamId = await teamWith(2, 'short');
      await stage.overwriteInput(teamId, 1, Buffer.from([0x61, 0xff, 0x62]));
      const [whole, damaged] = await pageOf(teamId);
      assert.equal(whole?.input, '1 short');
      assert.deepEqual(
        [damaged?.input, damaged?.output, damaged?.damaged],
        [null, null, ['input', 'output']],
      );
    });

    test('a short payload that was changed to another text is noticed', async () => {
      const teamId = await teamWith(1, 'short');
      await stage.overwriteInput(teamId, 1, Buffer.from('0 SHORT'));
      assert.deepEqual((await pageOf(teamId))[0]?.damaged, ['input', 'output']);
    });

    test('a payload that is not asked for is not read, so its damage does not matter', async () => {
      const teamId = await teamWith(1, long);
      await damageInput(teamId, 1);
      const { first } = await store.page(teamId, { page: 1, limit: 1, omit: new Set(['input']) });
      assert.ok(first[0] && !('damaged' in first[0]));
    });

    test('verify names each damaged trace and its damaged fields', async () => {
      const teamId = await teamWith(5, long);
      assert.deepEqual((await verifyTeam(store, teamId)).differences, []);
      await damageInput(teamId, 2);
      await damageInput(teamId, 5);
      const [newest, , , second] = await pageOf(teamId);
      assert.deepEqual((await verifyTeam(store, teamId)).differences, [
        `trace 2 (${second?.id}): damaged input, output`,
        `trace 5 (${newest?.id}): damaged input, output`,
      ]);
    });

    test('verify names values that no request could have stored', async () => {
      const teamId = await teamWith(bad.length, 'short');
      for (const [i, [column, value]] of bad.entries()) {
        await stage.overwriteValue(teamId, i + 1, column, value);
      }
      const { invalid } = await examineTeam(store, teamId);
      const traces = (await pageOf(teamId)).toReversed();
      assert.deepEqual(
        invalid,
        bad.map(([, , finding], i) => `trace ${i + 1} (${traces[i]?.id}): ${finding}`),
      );
    });

    test('verify lists a bounded number of damaged traces, and counts the others', async () => {
      const count = limits.findingsListMax + 7;
      const teamId = await teamWith(count, 'short');
      for (let seq = 1; seq <= count; seq++) {
        await stage.overwriteInput(teamId, seq, Buffer.from([0xff]));
      }
      const { differences } = await verifyTeam(store, teamId);
      assert.equal(differences.length, limits.findingsListMax + 1);
      assert.equal(differences.at(-1), '7 more damaged traces');
    });

    test('a copy keeps damaged payloads unchanged', async () => {
      const teamId = await teamWith(2, long);
      await damageInput(teamId, 1);
      const packed = await store.packedTraces(teamId, 1);
      assert.equal(packed.length, 2);
      assert.deepEqual(packed[0]?.input, await storedInput(teamId, 1));
    });
  });
}
