import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { draftTrace } from '../../src/core/trace.ts';
import { OperatorError } from '../../src/errors.ts';
import { copyStore } from '../../src/tools/copy-store.ts';
import type { CopyOptions } from '../../src/tools/copy-store.ts';
import { makeKey } from '../../src/store/teams-and-keys.ts';
import { makeSignInCode } from '../../src/store/sign-in.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import type { Store } from '../../src/store/store.ts';
import { usePostgres } from '../support/postgres.ts';
import { manualClock, temporaryFolder, totalOf } from '../support/service.ts';
import { awkward, compareTeam, history, live, nowUs } from './copy-histories.ts';

const postgres = usePostgres();
const folder = temporaryFolder();
const clock = manualClock(1);
const options = { clock: clock.source, role: 'tool' } as const;
const opened: Store[] = [];

after(async () => {
  for (const store of opened) await store.close();
  folder.remove();
});

async function onFile(): Promise<Store> {
  const path = join(folder.path, `${opened.length}.db`);
  const store = await openSqliteStore({ ...options, path });
  opened.push(store);
  return store;
}

async function inPostgres(): Promise<Store> {
  const store = await openPostgresStore({ ...options, url: await postgres.createDatabase() });
  opened.push(store);
  return store;
}

const quietly: CopyOptions = {
  clock: () => nowUs,
  follow: false,
  onProgress() {},
  onCaughtUp: () => assert.fail('the source has no writer'),
};
const runsWanted = 4;

test(`${runsWanted} random histories are the same in every store after copies there, back and there again`, async (t) => {
  // What is copied goes on to a third store, of the first one's kind.
  const chains = [
    [await onFile(), await inPostgres(), await onFile()],
    [await inPostgres(), await onFile(), await inPostgres()],
  ];
  let runs = 0;
  const seen = { traces: 0, requests: 0, keys: 0, zstd: 0, grown: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(history, history, history),
      fc.integer({ min: 1, max: 7 }),
      async (histories, limit) => {
        runs += 1;
        for (const [first, ...others] of chains) {
          const source = first ?? assert.fail();
          const ids: string[] = [];
          for (const [i, lived] of histories.entries()) {
            // The third continues after the first of the previous run.
            const run = i === 2 ? Math.max(1, runs - 1) : runs;
            const { team, created } = await source.ensureTeam(`run ${run}, ${i % 2}`, runs);
            ids.push(team.id);
            await live(source, clock, team.id, lived);
            if (created) await live(source, clock, team.id, awkward);
            else seen.grown += lived.steps.length;
          }
          let from = source;
          for (const to of others) {
            const { copied } = await copyStore(from, to, quietly);
            assert.ok(copied > 0);
            // A second copy finds nothing to do.
            assert.equal((await copyStore(from, to, quietly)).copied, 0);
            assert.deepEqual(await to.teams(nowUs), await from.teams(nowUs));
            assert.deepEqual(await to.keys(null), await from.keys(null));
            for (const id of ids) await compareTeam(from, to, id, limit);
            from = to;
          }
          for (const id of ids) {
            const packed = await from.packedTraces(id, 1);
            seen.traces += packed.length;
            seen.zstd += packed.filter(({ zstdMask }) => zstdMask > 0).length;
            seen.requests += (await from.storedRequests(id, nowUs)).length;
          }
          seen.keys += (await from.keys(null)).length;
        }
      },
    ),
    { numRuns: runsWanted, endOnFailure: true },
  );
  for (const store of opened) assert.deepEqual(await store.checkStorage(), []);
  t.diagnostic(JSON.stringify(seen));
  for (const [what, count] of Object.entries(seen)) assert.ok(count > 10, `${what}: ${count}`);
});

test('a copy takes neither the session secret nor sign-in codes along', async () => {
  for (const [from, to] of [
    [await onFile(), await inPostgres()],
    [await inPostgres(), await onFile()],
  ] as const) {
    const { team } = await from.ensureTeam('a', nowUs);
    const { record } = makeKey({ name: null, scope: 'read', nowUs, expiresAtUs: null });
    await from.createKey(team.id, record);
    const { record: code } = makeSignInCode(record.id, nowUs);
    await from.addSignInCode(code, nowUs);
    const secret = await from.sessionSecret();
    assert.equal((await copyStore(from, to, quietly)).keys, 1);
    assert.notDeepEqual(await to.sessionSecret(), secret);
    assert.equal(await to.findSignInCode(code.hash, nowUs), null);
    assert.equal(await from.findSignInCode(code.hash, nowUs), record.id);
  }
});

test('a copy reports its progress and its result', async () => {
  const [from, to] = [await onFile(), await onFile()];
  for (const [name, count] of Object.entries({ a: 2500, b: 0, c: 1200 })) {
    const { team } = await from.ensureTeam(name, 1);
    const drafts = Array.from({ length: count }, () => draftTrace({ model: 'm' }));
    if (count > 0) await from.append([{ teamId: team.id, drafts }]);
  }
  const told: [number, number][] = [];
  const report = await copyStore(from, to, {
    ...quietly,
    onProgress: (done, total) => void told.push([done, total]),
  });
  assert.deepEqual(
    [report.copied, report.keys, report.teams.map(({ name, traces }) => [name, traces])],
    [
      3700,
      0,
      [
        ['a', 2500],
        ['b', 0],
        ['c', 1200],
      ],
    ],
  );
  assert.deepEqual(
    told.map(([done]) => done),
    [1000, 2000, 2500, 3500, 3700, 3700],
  );
  assert.ok(told.every(([, total]) => total === 3700));
});

test('all requests of a busy day are known after a copy', async () => {
  for (const [open, openTarget] of [
    [onFile, inPostgres],
    [inPostgres, onFile],
  ] as const) {
    const [from, to] = [await open(), await openTarget()];
    const { team } = await from.ensureTeam('busy', 1);
    const names = Array.from({ length: 2500 }, (_, i) => `request ${i * 7919}`);
    await from.append(
      names.map((keyHash) => ({
        teamId: team.id,
        drafts: [draftTrace({ model: 'm' })],
        request: { keyHash, bodyHash: 'b', rejected: null },
      })),
    );
    await copyStore(from, to, quietly);
    const retries = names.map((keyHash, i) => ({
      teamId: team.id,
      drafts: [draftTrace({ model: 'm' })],
      request: { keyHash, bodyHash: 'b', rejected: `of retry ${i}` },
    }));
    const outcomes = await to.append(retries);
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.kind === 'replayed' ? outcome.firstSeq : outcome.kind)),
      names.map((_, i) => i + 1),
    );
  }
});

test('a file that is being copied has no server until the copy has ended', async () => {
  const path = join(folder.path, 'held.db');
  const from = await openSqliteStore({ ...options, path });
  await copyStore(from, await onFile(), quietly);
  const serve = () => openSqliteStore({ ...options, path, role: 'server' });
  await assert.rejects(serve(), (error) => error instanceof OperatorError);
  await from.close();
  await (await serve()).close();
});

test('a team and a key that are added during a copy are copied by the next one at the latest', async () => {
  for (const open of [onFile, inPostgres]) {
    const [from, to] = [await open(), await open()];
    const { team: old } = await from.ensureTeam('old', 1);
    await from.append([{ teamId: old.id, drafts: [draftTrace({ model: 'm' })] }]);
    const { record } = makeKey({ name: null, scope: 'full', nowUs: 1, expiresAtUs: null });
    const adding: Promise<void>[] = [];
    const add = async (): Promise<void> => {
      const { team } = await from.ensureTeam('new', 1);
      await from.createKey(team.id, record);
    };
    const onProgress = (): void => {
      if (adding.length === 0) adding.push(add());
    };
    const first = copyStore(from, to, { ...quietly, onProgress });
    await first.catch((error: unknown) => assert.ok(error instanceof OperatorError, String(error)));
    await Promise.all(adding);
    await copyStore(from, to, quietly);
    assert.equal((await to.findKey(record.id))?.teamName, 'new');
  }
});

test('a copy with --follow catches up though the source is always one trace ahead', async () => {
  const path = join(folder.path, 'busy.db');
  const server = await openSqliteStore({ ...options, path, role: 'server' });
  const source = await openSqliteStore({ ...options, path });
  const to = await onFile();
  opened.push(source);
  const { team: busy } = await server.ensureTeam('busy', 1);
  const { team: quiet } = await server.ensureTeam('quiet', 1);
  const drafts = [draftTrace({ model: 'm' })];
  await server.append([
    { teamId: busy.id, drafts },
    { teamId: quiet.id, drafts },
  ]);
  let written = 1;
  let isCaughtUp = false;
  const from: Store = {
    ...source,
    async packedTraces(teamId, fromSeq) {
      assert.ok(written < 20, 'it never ends');
      if (teamId === busy.id && !isCaughtUp) {
        written += 1;
        await server.append([{ teamId, drafts }]);
      }
      return source.packedTraces(teamId, fromSeq);
    },
  };
  const stopping: Promise<void>[] = [];
  const copy = copyStore(from, to, {
    ...quietly,
    follow: true,
    onCaughtUp() {
      isCaughtUp = true;
      stopping.push(server.close());
    },
  });
  await copy.catch(() => server.close());
  await Promise.all(stopping);
  const report = await copy;
  assert.equal((await totalOf(to, quiet.id)).calls, 1);
  assert.equal((await totalOf(to, busy.id)).calls, written);
  assert.equal(report.copied, written + 1);
});
