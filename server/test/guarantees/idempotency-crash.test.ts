import assert from 'node:assert/strict';
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { verifyTeam } from '../../src/tools/verify.ts';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';
import { mountTmpfs } from '../process/helpers.ts';
import { spawnServer } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { readRequestLog } from '../support/request-log.ts';
import type { LoggedRequest } from '../support/request-log.ts';
import { skipUnlessCi } from '../support/skip.ts';
import {
  makeTeams,
  readAcknowledged,
  requestLogPath,
  rounds,
  startLoad,
  withTool,
} from './crash-lab.ts';
import type { LoadTeam } from './crash-lab.ts';
import { idempotentPost } from './idempotency-requests.ts';

const clients = 24;
const teamCount = 4;

test('after kill -9 each idempotent batch is stored whole or not at all, and exactly once after its retry', async (t) => {
  const seed = chooseSeed();
  const random = seededRandom(seed);
  t.diagnostic(`seed ${seed}`);
  const folder = temporaryFolder();
  const databasePath = join(folder.path, 'idempotency.db');
  const readLog = () => readRequestLog(requestLogPath(folder.path));
  const countAnswered = () => readAcknowledged(folder.path).length;
  const flags = ['--database', `sqlite:${databasePath}`, '--log-level', 'warn'];
  const teams = await makeTeams(databasePath, teamCount);
  const counts = { storedUnanswered: 0, notStored: 0 };
  /** The requests that are stored when a round begins. A retry of one of them must be a replay, and no other may be. */
  let known = new Set<string>();
  const count = rounds(3);
  for (let round = 1; round <= count + 1; round++) {
    const isLast = round > count;
    const openBefore = readLog().filter(({ acknowledged }) => acknowledged.length === 0);
    const server = await spawnServer(flags);
    const load = startLoad(
      server.url,
      folder.path,
      clients,
      isLast ? 'last' : round,
      teams,
      'idempotency-load.ts',
    );
    if (isLast) {
      await load.ended;
    } else {
      await load.begun();
      await sleep(random() * 400);
    }
    const where = `round ${round}, seed ${seed}`;
    if (round === 1) {
      // A kill at random may find no request between its commit and its answer. This one surely does.
      await load.kill();
      const hasUnanswered = async () => (await countStored(server.url, teams)) > countAnswered();
      await eventually('a stored request without an answer', 120_000, hasUnanswered);
      await server.end('SIGKILL');
    } else {
      await server.end('SIGKILL');
      assert.deepEqual(Object.keys(await load.end()), ['201'], where);
    }

    const now = await compareRequests(databasePath, readLog(), teams, where);
    for (const { name } of openBefore) {
      const reply = now.acknowledged.get(name);
      if (reply) assert.equal(reply.isReplay, known.has(name), `${name}, ${where}`);
    }
    counts.storedUnanswered += [...now.unanswered].filter((name) => now.stored.has(name)).length;
    counts.notStored += [...now.unanswered].filter((name) => !now.stored.has(name)).length;
    if (isLast) assert.deepEqual([...now.unanswered], [], where);
    known = now.stored;
  }
  const requests = readLog();
  const traces = requests.reduce((sum, { name }) => sum + idempotentPost(name).traces, 0);
  const replays = requests.filter(({ acknowledged }) => acknowledged[0]?.isReplay).length;
  t.diagnostic(
    `${count} kills, ${requests.length} requests with ${traces} traces, all stored once; when the server died ` +
      `${counts.storedUnanswered} were stored without an answer and ${counts.notStored} were not; ${replays} replays`,
  );
  assert.ok(replays > 0, 'no retry found its first attempt stored');
  folder.remove();
});

async function countStored(url: string, teams: readonly LoadTeam[]): Promise<number> {
  let stored = 0;
  for (const { key } of teams) {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${url}/traces?limit=1`, { headers });
    stored += ((await response.json()) as { total: number }).total;
  }
  return stored;
}

interface State {
  stored: Set<string>;
  acknowledged: Map<string, { isReplay: boolean; ids: string[] }>;
  unanswered: Set<string>;
}

/** Compares the request log with the store, request by request, and verifies the store. */
async function compareRequests(
  databasePath: string,
  requests: readonly LoggedRequest[],
  teams: readonly LoadTeam[],
  where: string,
): Promise<State> {
  const found = new Map<string, { seq: number; id: string; user: string }[]>();
  await withTool(databasePath, async (store) => {
    assert.deepEqual(await store.checkStorage(), []);
    for (const { id: teamId } of teams) {
      assert.deepEqual((await verifyTeam(store, teamId)).differences, [], where);
      await store.audit(teamId, async ({ traces }) => {
        for await (const chunk of traces) {
          for (const { seq, id, user_identifier } of chunk) {
            const user = user_identifier ?? '';
            const name = user.split('/')[0] ?? '';
            found.set(name, [...(found.get(name) ?? []), { seq, id, user }]);
          }
        }
      });
    }
  });
  const state: State = { stored: new Set(), acknowledged: new Map(), unanswered: new Set() };
  for (const { name, acknowledged: replies } of requests) {
    const [acknowledged] = replies;
    assert.ok(replies.length <= 1, `${name} was sent again after its answer, ${where}`);
    const traces = found.get(name) ?? [];
    if (acknowledged || traces.length > 0) {
      const expected = Array.from(
        { length: idempotentPost(name).traces },
        (_, i) => `${name}/${i}`,
      );
      const users = traces.map(({ user }) => user);
      assert.deepEqual(users, expected, `${name} is not stored whole and once, ${where}`);
      const first = traces[0]?.seq ?? 0;
      assert.ok(
        traces.every(({ seq }, i) => seq === first + i),
        `${name} has gaps, ${where}`,
      );
      state.stored.add(name);
    }
    if (!acknowledged) {
      state.unanswered.add(name);
      continue;
    }
    const ids = traces.map(({ id }) => id);
    assert.deepEqual(acknowledged.ids, ids, `${name} was acknowledged with other ids, ${where}`);
    state.acknowledged.set(name, acknowledged);
  }
  const unknown = [...found.keys()].filter((name) => !requests.some((one) => one.name === name));
  assert.deepEqual(unknown, [], where);
  return state;
}

/** A batch of two, always with the same idempotency key. */
async function postIdempotent(service: TestService, key: string) {
  const body = { traces: [{ model: 'a', input: 'x'.repeat(300) }, { model: 'b' }] };
  const headers = { 'idempotency-key': 'failed-at-first' };
  const answer = await service.call(key, 'POST', '/traces/batch', body, headers);
  const replayed = answer.headers.get('idempotent-replayed');
  return { outcome: [answer.status, answer.json.code ?? replayed], text: answer.text };
}

/** After a failure the idempotency key is unused: the retry is stored, and the one after it is a replay. */
async function assertStoredThenReplayed(service: TestService, key: string): Promise<void> {
  const total = async () => (await service.call(key, 'GET', '/traces?limit=1')).json.total;
  const before = await total();
  const first = await postIdempotent(service, key);
  const again = await postIdempotent(service, key);
  assert.deepEqual(
    [first.outcome, again.outcome],
    [
      [201, null],
      [201, 'true'],
    ],
  );
  assert.equal(again.text, first.text);
  assert.equal(await total(), before + 2);
}

test('a write that fails because the disk is full does not use up its idempotency key', async (t) => {
  const mount = await mountTmpfs(t, 'size=4m');
  if (mount.kind === 'impossible') return skipUnlessCi(t, mount.reason);
  const service = await startTestService({ folder: mount.folder });
  try {
    const { key } = await service.keyFor();
    const filler = join(mount.folder, 'filler');
    for (const bytes of [65_536, 4096, 1]) {
      assert.throws(() => {
        for (;;) appendFileSync(filler, Buffer.alloc(bytes));
      }, /ENOSPC/);
    }
    // The space that the database files already have may hold a few more.
    const fill = async () => (await service.call(key, 'POST', '/traces', { model: 'm' })).status;
    for (let refused = 0; refused < 3;) refused = (await fill()) === 507 ? refused + 1 : 0;
    const { outcome } = await postIdempotent(service, key);
    assert.deepEqual(outcome, [507, 'disk_full']);
    rmSync(filler);
    await assertStoredThenReplayed(service, key);
  } finally {
    await service.stop();
  }
});
