import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { eventually } from '../support/eventually.ts';
import { callCli, spawnServer } from '../support/cli.ts';
import { usePostgres } from '../support/postgres.ts';
import { rollUp } from '../support/roll-up.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import type { Answer, TestService } from '../support/service.ts';
import { assertTallies } from '../support/tally-answers.ts';
import { assertVerifies, contentsOf, copyAll, copyArgs, withStoreAt } from './copy-lab.ts';
import { assertRefused, postTrace } from './helpers.ts';
import type { Cleaner } from './helpers.ts';

const postgres = usePostgres();
let files = 0;

/** A store that does not exist yet, as a flag names it. */
async function newPlace(t: Cleaner, kind: 'sqlite' | 'postgres'): Promise<string> {
  if (kind === 'postgres') return postgres.createDatabase();
  const folder = temporaryFolder();
  t.after(() => folder.remove());
  return `sqlite:${join(folder.path, `${++files}.db`)}`;
}

async function withService<T>(
  database: string,
  work: (service: TestService) => Promise<T>,
): Promise<T> {
  const service = await startTestService({ flags: { database } });
  try {
    return await work(service);
  } finally {
    await service.stop();
  }
}

/** A store with the team "team" and some traces of it. */
async function demoPlace(t: Cleaner, kind: 'sqlite' | 'postgres', count: number): Promise<string> {
  const place = await newPlace(t, kind);
  await addTraces(place, count);
  return place;
}

/** As a client would, or an operator who confused the two stores. */
async function addTraces(place: string, count: number): Promise<void> {
  await withStoreAt(place, async (store) => {
    const { team } = await store.ensureTeam('team', 1);
    const drafts = Array.from({ length: count }, (_, i) => draftTrace({ model: `m${i % 3}` }));
    await store.append([{ teamId: team.id, drafts }]);
  });
}

const single = { model: 'm', input: `a\u0000b ${'long '.repeat(1000)}`, cost_usd: 0.000000123456 };
const batch = { traces: [{ model: 'b1', output: '' }, { model: '' }, { model: 'b2' }] };
const header = (name: string) => ({ 'idempotency-key': name });

/** All that the service returns for a team, as bytes. */
async function repliesOf(service: TestService, key: string): Promise<string[]> {
  const paths = [1, 2, 3].map((page) => `/traces?limit=7&page=${page}`);
  for (const name of ['overview', 'by-model', 'by-feature', 'daily'])
    paths.push(`/analytics/${name}`);
  const replies: string[] = [];
  for (const path of paths) {
    const { status, text } = await service.call(key, 'GET', path);
    assert.equal(status, 200, path);
    replies.push(text);
  }
  return replies;
}

const ways = [
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
] as const;

for (const [from, to] of ways) {
  test(`after a copy from ${from} to ${to} clients continue without a difference`, async (t) => {
    const [source, target] = [await newPlace(t, from), await newPlace(t, to)];
    const post = (service: TestService, key: string, path: string, body: object, name: string) =>
      service.call(key, 'POST', path, body, header(name));
    const before = await withService(source, async (service) => {
      const { key, keyId } = await service.keyFor('team');
      const [reader, revoked, other] = [
        await service.keyFor('team', { scope: 'read' }),
        await service.keyFor('team'),
        await service.keyFor('other'),
      ];
      for (let i = 0; i < 12; i++) {
        const body = { ...single, model: `m${i % 3}`, feature_name: 'f' };
        assert.equal((await service.call(key, 'POST', '/traces', body)).status, 201);
      }
      assert.equal((await service.call(other.key, 'POST', '/traces', single)).status, 201);
      await service.beside.revokeKey(revoked.keyId, Date.now() * 1000);
      return {
        key,
        keyId,
        reader,
        revoked,
        other,
        single: await post(service, key, '/traces', single, 'k1'),
        batch: await post(service, key, '/traces/batch', batch, 'k2'),
        replies: await repliesOf(service, key),
      };
    });
    assert.deepEqual([before.single.status, before.batch.status], [201, 201]);

    const contents = await contentsOf(source);
    const report = await copyAll(source, target);
    // The first start of the source has made its own team and key.
    assert.deepEqual([report.teams, report.keys, report.traces, report.copied], [3, 5, 16, 16]);
    assert.equal(await contentsOf(source), contents, 'the source was changed');

    await withService(target, async (service) => {
      const { key, reader, revoked, other } = before;
      assert.equal(service.firstKey, null, 'the target is not a new store');
      assert.deepEqual(await repliesOf(service, key), before.replies);
      const asked = async (by: string, method: string, body?: object): Promise<number> =>
        (await service.call(by, method, '/traces', body)).status;
      assert.equal(await asked(revoked.key, 'GET'), 401);
      assert.equal(await asked(reader.key, 'POST', single), 403);
      assert.equal((await service.call(other.key, 'GET', '/traces')).json.total, 1);

      const replays: [Answer, Answer][] = [
        [await post(service, key, '/traces', single, 'k1'), before.single],
        [await post(service, key, '/traces/batch', batch, 'k2'), before.batch],
      ];
      for (const [again, first] of replays) {
        assert.deepEqual([again.status, again.text], [201, first.text]);
        assert.equal(again.headers.get('idempotent-replayed'), 'true');
      }
      const reused = await post(service, key, '/traces', { model: 'x' }, 'k1');
      assert.equal(reused.json.code, 'idempotency_key_reused');
      assert.deepEqual(await repliesOf(service, key), before.replies, 'nothing was stored');

      const next = await service.call(key, 'POST', '/traces', { model: 'next' });
      assert.equal(next.status, 201);
      const { total, traces } = (await service.call(key, 'GET', '/traces?limit=2')).json;
      assert.deepEqual([total, traces[0].id], [16, next.json.id]);
      assert.ok(traces[0].created_at > traces[1].created_at, 'its time is later');
    });
    await assertVerifies(target);
  });
}

for (const [from, to] of ways) {
  test(`a copy from ${from} to ${to} keeps the time zone of a team and everything is rolled up`, async (t) => {
    const [source, target] = [await newPlace(t, from), await newPlace(t, to)];
    const teamId = await withStoreAt(source, async (store) => {
      const { team } = await store.ensureTeam('nepal', 1, 'Asia/Kathmandu');
      const drafts = Array.from({ length: 300 }, (_, i) => draftTrace({ model: `m${i % 3}` }));
      await store.append([{ teamId: team.id, drafts }]);
      return team.id;
    });
    await copyAll(source, target);
    await withStoreAt(target, async (store) => {
      const { timeZone, seq } = await store.marks(teamId);
      assert.deepEqual([timeZone, seq], ['Asia/Kathmandu', 300]);
      assert.equal(await store.timeZone(teamId), 'Asia/Kathmandu');
      await assertTallies(store, teamId);
    });
  });
}

test('a time zone that has changed since an earlier copy is copied too', async (t) => {
  const [source, target] = [await demoPlace(t, 'sqlite', 20), await newPlace(t, 'sqlite')];
  await copyAll(source, target);
  const zone = ['--time-zone', 'Asia/Tokyo', '--database', source];
  assert.equal((await callCli(['teams', 'set', 'team', ...zone])).code, 0);
  assert.equal((await copyAll(source, target)).copied, 0);
  await withStoreAt(target, async (store) => {
    const team = await store.findTeam('team');
    assert.equal(await store.timeZone(team?.id ?? ''), 'Asia/Tokyo');
  });
});

test('the same copy again copies nothing, and its report is readable text', async (t) => {
  const [source, target] = [await demoPlace(t, 'sqlite', 1500), await newPlace(t, 'sqlite')];
  const first = await callCli(copyArgs(source, target));
  assert.equal(first.code, 0, first.stderr);
  assert.match(
    first.stdout,
    /^Copied 1500 traces in [\d.]+ s\. The target has 1 team, 0 keys and 1500 traces, like the source, and everything is correct\.\n$/,
  );
  assert.equal(first.stderr, '', 'no progress bar without a terminal');
  assert.equal((await copyAll(source, target)).copied, 0);
});

describe(
  'a copy is refused with a clear message and does not change the source',
  { concurrency: 2 },
  () => {
    /** Exit 1, words, no stack, and not one row of the source changed. */
    async function assertNoCopy(from: string, to: string, words: RegExp): Promise<void> {
      const contents = await contentsOf(from);
      assertRefused(await callCli(copyArgs(from, to)), 1, words);
      assert.equal(await contentsOf(from), contents, 'the source was changed');
    }

    /** Changes a file behind everybody's back. The team has the number 1. */
    function change(place: string, sql: string): void {
      const db = new DatabaseSync(place.replace('sqlite:', ''));
      assert.ok(Number(db.prepare(sql).run().changes) > 0, sql);
      db.close();
    }
    const traces = (condition: string) =>
      `delete from traces where key & 0xffffffffff ${condition}`;

    test('if --from or --to is missing', async (t) => {
      const place = await demoPlace(t, 'sqlite', 1);
      assertRefused(await callCli(['copy', '--to', place]), 1, /^--from is missing/);
      assertRefused(await callCli(['copy', '--from', place]), 1, /^--to is missing/);
      assertRefused(
        await callCli(copyArgs('mysql://x', place)),
        1,
        /^--from is not valid\. Expected/,
      );
      await assertNoCopy(place, 'postgres', /^--to is not valid\. Expected/);
    });

    test('if source and target are the same store', async (t) => {
      const place = await demoPlace(t, 'sqlite', 1);
      const { base, dir } = { base: place.split('/').at(-1), dir: dirname(place) };
      await assertNoCopy(place, place, /are the same database/);
      await assertNoCopy(
        place,
        `${dir}/../${dir.split('/').at(-1)}/${base}`,
        /are the same database/,
      );
    });

    test('if the source does not exist; neither store is created', async (t) => {
      const [nowhere, target] = [await newPlace(t, 'sqlite'), await newPlace(t, 'sqlite')];
      const path = nowhere.replace('sqlite:', '');
      const deep = `sqlite:${dirname(path)}/folder/x.db`;
      for (const from of [nowhere, deep]) {
        assertRefused(
          await callCli(copyArgs(from, target)),
          1,
          /^The database \/.*\.db does not exist\.\n$/,
        );
      }
      const empty = await postgres.createDatabase();
      assertRefused(await callCli(copyArgs(empty, target)), 1, /has no TraceTally tables\.\n$/);
      for (const made of [path, join(dirname(path), 'folder'), target.replace('sqlite:', '')])
        assert.ok(!existsSync(made), made);
      const tables = "select 1 from pg_class where relnamespace = 'public'::regnamespace";
      assert.deepEqual(await postgres.sql(empty, tables), []);
    });

    for (const kind of ['sqlite', 'postgres'] as const) {
      test(`if the target on ${kind} has another team of the same name`, async (t) => {
        const [source, target] = [await demoPlace(t, 'sqlite', 5), await demoPlace(t, kind, 3)];
        const contents = await contentsOf(target);
        await assertNoCopy(
          source,
          target,
          /^The target already has another team named "team"\. Copy into/,
        );
        assert.equal(await contentsOf(target), contents);
      });

      test(`if the target on ${kind} was written to`, async (t) => {
        const [source, target] = [await demoPlace(t, 'sqlite', 5), await newPlace(t, kind)];
        await copyAll(source, target);
        await addTraces(target, 2);
        const contents = await contentsOf(target);
        const words = /^The team "team" has traces in the target that are not in the source\./;
        await assertNoCopy(source, target, words);
        // Also when the source has as many.
        await addTraces(source, 2);
        await assertNoCopy(source, target, words);
        assert.equal(await contentsOf(target), contents);
      });
    }

    const gaps = {
      'in the middle': ['= 7', 7],
      'at the end': ['= 2500', 2500],
      'that is larger than what is read at once': ['between 600 and 2100', 600],
    } as const;
    for (const [where, [condition, missing]] of Object.entries(gaps)) {
      test(`if the source has a gap ${where}`, async (t) => {
        const [source, target] = [await demoPlace(t, 'sqlite', 2500), await newPlace(t, 'sqlite')];
        change(source, traces(condition));
        await assertNoCopy(
          source,
          target,
          new RegExp(`Trace ${missing} of the team "team" is missing from the source`),
        );
      });
    }

    for (const [kind, words] of [
      ['sqlite', 'a server'],
      ['postgres', String.raw`servers with \d+ connections`],
    ] as const) {
      test(`if a server is running on the source, on ${kind}`, async (t) => {
        const [source, target] = [await newPlace(t, kind), await newPlace(t, 'sqlite')];
        const made = ['keys', 'create', '--team', 'team', '--json', '--database', source];
        const { key } = JSON.parse((await callCli(made)).stdout) as { key: string };
        const server = await spawnServer(['--database', source]);
        t.after(() => server.end('SIGKILL').then(() => {}));
        assert.equal((await postTrace(server.url, key)).status, 201);
        // Otherwise the server changes its rollups at some time during the test.
        await withStoreAt(source, (store) => rollUp(store));
        await assertNoCopy(
          source,
          target,
          new RegExp(`^The source is in use by ${words}\\. Stop .* use --follow`),
        );
        await withStoreAt(target, async (store) => assert.deepEqual(await store.teams(0), []));
        assert.equal((await postTrace(server.url, key)).status, 201, 'the server works on');
        assert.equal(await server.end('SIGTERM'), 0);
        // A database may notice a moment later that a connection is gone.
        await eventually('a source without a server', 120_000, () =>
          withStoreAt(source, async (store) => (await store.claim()) === null),
        );
        assert.equal((await copyAll(source, target)).copied, 2);
      });
    }
  },
);
