import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { verifyTeam } from '../../src/tools/verify.ts';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';
import { mountTmpfs } from '../process/helpers.ts';
import { spawnServer } from '../support/cli.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { skipUnlessCi } from '../support/skip.ts';
import { makeTeams, rounds, withTool } from './crash-lab.ts';
import type { LoadTeam } from './crash-lab.ts';
import { readOnceLedger } from './once-ledger.ts';
import { onceRequest } from './once-requests.ts';

const clients = 24;
const teamCount = 4;
const loadProgram = fileURLToPath(new URL('once-load.ts', import.meta.url));

test('kill -9 under batches with keys: each is there whole or not at all, and once when it was sent again', async (t) => {
  const seed = chooseSeed();
  const random = seededRandom(seed);
  t.diagnostic(`seed ${seed}`);
  const folder = temporaryFolder();
  const databasePath = join(folder.path, 'once.db');
  const ledgerPath = join(folder.path, 'ledger.txt');
  const flags = ['--database', `sqlite:${databasePath}`, '--log-level', 'warn'];
  const teams = await makeTeams(databasePath, teamCount);
  const tally = { storedUnanswered: 0, notStored: 0 };
  /** What was there before a round begins: what of it is sent again must be a replay, and nothing else. */
  let known = new Set<string>();
  const count = rounds(6);
  for (let round = 1; round <= count + 1; round++) {
    const isLast = round > count;
    const openBefore = readOnceLedger(ledgerPath).filter(({ acknowledged }) => !acknowledged);
    const server = await spawnServer(flags);
    const load = startLoad(server.url, ledgerPath, isLast ? 'last' : String(round), teams);
    if (isLast) {
      await load.ended;
    } else {
      await load.begun();
      await sleep(random() * 400);
    }
    await server.end('SIGKILL');
    assert.deepEqual(Object.keys(await load.end()), ['201'], `round ${round}, seed ${seed}`);

    const where = `round ${round}, seed ${seed}`;
    const now = await holdAgainst(databasePath, ledgerPath, teams, where);
    for (const { nonce } of openBefore) {
      const told = now.acknowledged.get(nonce);
      if (told) assert.equal(told.isReplay, known.has(nonce), `${nonce}, ${where}`);
    }
    tally.storedUnanswered += [...now.unanswered].filter((nonce) => now.stored.has(nonce)).length;
    tally.notStored += [...now.unanswered].filter((nonce) => !now.stored.has(nonce)).length;
    if (isLast) assert.deepEqual([...now.unanswered], [], where);
    known = now.stored;
  }
  const ledger = readOnceLedger(ledgerPath);
  const traces = ledger.reduce((sum, { nonce }) => sum + onceRequest(nonce).traces, 0);
  const replays = ledger.filter(({ acknowledged }) => acknowledged?.isReplay).length;
  t.diagnostic(
    `${count} kills, ${ledger.length} requests with ${traces} traces, all stored once; when the server died ` +
      `${tally.storedUnanswered} were stored without an answer and ${tally.notStored} were not; ${replays} replays`,
  );
  assert.ok(replays > 0, 'no retry met what it had stored');
  folder.remove();
});

interface State {
  stored: Set<string>;
  acknowledged: Map<string, { isReplay: boolean; ids: string[] }>;
  unanswered: Set<string>;
}

/** The ledger against the store, request by request, and the store recounted. */
async function holdAgainst(
  databasePath: string,
  ledgerPath: string,
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
            const nonce = user.split('/')[0] ?? '';
            found.set(nonce, [...(found.get(nonce) ?? []), { seq, id, user }]);
          }
        }
      });
    }
  });
  const state: State = { stored: new Set(), acknowledged: new Map(), unanswered: new Set() };
  const ledger = readOnceLedger(ledgerPath);
  for (const { nonce, acknowledged } of ledger) {
    const traces = found.get(nonce) ?? [];
    if (acknowledged || traces.length > 0) {
      const expected = Array.from({ length: onceRequest(nonce).traces }, (_, i) => `${nonce}/${i}`);
      const users = traces.map(({ user }) => user);
      assert.deepEqual(users, expected, `${nonce} is not there just once and whole, ${where}`);
      const first = traces[0]?.seq ?? 0;
      assert.ok(
        traces.every(({ seq }, i) => seq === first + i),
        `${nonce} has gaps, ${where}`,
      );
      state.stored.add(nonce);
    }
    if (!acknowledged) {
      state.unanswered.add(nonce);
      continue;
    }
    const ids = traces.map(({ id }) => id);
    assert.deepEqual(acknowledged.ids, ids, `${nonce} was told of other traces, ${where}`);
    state.acknowledged.set(nonce, acknowledged);
  }
  const strangers = [...found.keys()].filter((nonce) => !ledger.some((one) => one.nonce === nonce));
  assert.deepEqual(strangers, [], where);
  return state;
}

function startLoad(url: string, ledgerPath: string, round: string, teams: readonly LoadTeam[]) {
  const acknowledged = (): number =>
    readOnceLedger(ledgerPath).filter((entry) => entry.acknowledged).length;
  const before = acknowledged();
  const args = [url, ledgerPath, String(clients), round, ...teams.map(({ key }) => key)];
  const child = spawn(process.execPath, [loadProgram, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let stdout = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return {
    ended,
    async begun() {
      for (let waits = 0; acknowledged() === before; waits++) {
        assert.ok(waits < 1000, 'nothing was acknowledged for 10 s');
        await sleep(10);
      }
    },
    async end() {
      child.kill('SIGTERM');
      await ended;
      return JSON.parse(stdout) as Record<string, number>;
    },
  };
}

/** A batch of two with a key that does not change. */
async function postOnce(service: TestService, key: string) {
  const body = { traces: [{ model: 'a', input: 'x'.repeat(300) }, { model: 'b' }] };
  const headers = { 'idempotency-key': 'refused-at-first' };
  const answer = await service.call(key, 'POST', '/traces/batch', body, headers);
  const replayed = answer.headers.get('idempotent-replayed');
  return { outcome: [answer.status, answer.json.code ?? replayed], text: answer.text };
}

/** After a refusal the key is free, and the retry is stored; the one after it is a replay. */
async function assertFreeThenTaken(service: TestService, key: string): Promise<void> {
  const total = async () => (await service.call(key, 'GET', '/traces?limit=1')).json.total;
  const before = await total();
  const first = await postOnce(service, key);
  const again = await postOnce(service, key);
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

test('a write that is refused because the disk is full does not use its key up', async (t) => {
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
    // What the files have already taken of the disk holds some more.
    const fill = async () => (await service.call(key, 'POST', '/traces', { model: 'm' })).status;
    for (let refused = 0; refused < 3;) refused = (await fill()) === 507 ? refused + 1 : 0;
    const { outcome } = await postOnce(service, key);
    assert.deepEqual(outcome, [507, 'disk_full']);
    rmSync(filler);
    await assertFreeThenTaken(service, key);
  } finally {
    await service.stop();
  }
});
