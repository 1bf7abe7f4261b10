import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Trace } from '../../src/core/trace.ts';
import { draftTrace } from '../../src/core/trace.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import type { SqliteOptions } from '../../src/store/sqlite/open-sqlite-store.ts';
import { rollupPathOf } from '../../src/store/sqlite/rollup-file.ts';
import type { Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { addSwapRun, meanCost, swapCosts } from '../support/cost-swaps.ts';
import { eventually } from '../support/eventually.ts';
import { randomDraft } from '../support/random-drafts.ts';
import { rollUp } from '../support/roll-up.ts';
import { chooseSeed, seededRandom } from '../support/seeded-random.ts';
import { talliesOf, temporaryFolder, totalOf } from '../support/service.ts';
import { assertTalliesOf } from '../support/tally-answers.ts';

const folder = temporaryFolder();
const seed = chooseSeed();
const random = seededRandom(seed);
const teamName = 'rolled';
const withinMs = 120_000;
/** The states of one store, in their order: the rollups of each contain all of its traces and changes. */
const states = ['old', 'new'] as const;
let stores = 0;

after(() => folder.remove());

function open(path: string, options: Partial<SqliteOptions> = {}): Promise<Store> {
  const clock = { kind: 'system' } as const;
  return openSqliteStore({ path, clock, role: 'server', rolling: 'manual', ...options });
}

async function withStore<T>(
  path: string,
  work: (store: Store, teamId: string) => Promise<T>,
  options?: Partial<SqliteOptions>,
): Promise<T> {
  const store = await open(path, options);
  try {
    const { team } = await store.ensureTeam(teamName, 1, 'Asia/Kathmandu');
    return await work(store, team.id);
  } finally {
    await store.close();
  }
}

async function append(store: Store, teamId: string, count: number): Promise<void> {
  const drafts = Array.from({ length: count }, () => randomDraft(random, Date.now() * 1000));
  const [outcome] = await store.append([{ teamId, drafts }]);
  assert.equal(outcome?.kind, 'stored');
}

let runs = 0;

async function changeCosts(store: Store, teamId: string): Promise<void> {
  const run = await addSwapRun(store, teamId, `run ${++runs}`);
  for (let afterSeq = 0; afterSeq < 100; afterSeq += 7) await swapCosts(store, run, afterSeq);
}

/** The traces as they are now. */
async function tracesIn(store: Store, teamId: string): Promise<Trace[]> {
  const { lastSeq } = await store.counter(teamId);
  const traces: Trace[] = [];
  while (traces.length < lastSeq) {
    const firstSeq = traces.length + 1;
    const count = Math.min(1_000, lastSeq - firstSeq + 1);
    traces.push(...(await store.range(teamId, { firstSeq, count })));
  }
  return traces;
}

async function assertExact(store: Store, teamId: string): Promise<number> {
  const traces = await tracesIn(store, teamId);
  await assertTalliesOf(store, teamId, traces);
  return traces.length;
}

const stateAt = (name: string): string => join(folder.path, `${name}.db`);

/** The files of a state under another name, without a server. */
function copyOf(state: (typeof states)[number]): string {
  const path = join(folder.path, `copy-${++stores}.db`);
  copyFileSync(stateAt(state), path);
  copyFileSync(rollupPathOf(stateAt(state)), rollupPathOf(path));
  return path;
}

before(async () => {
  const path = join(folder.path, 'growing.db');
  for (const state of states) {
    await withStore(path, async (store, teamId) => {
      await append(store, teamId, 150);
      await changeCosts(store, teamId);
      await rollUp(store);
      await append(store, teamId, 50);
      await changeCosts(store, teamId);
      await rollUp(store);
    });
    for (const file of [path, rollupPathOf(path)]) {
      assert.equal(statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0, 0);
    }
    copyFileSync(path, stateAt(state));
    copyFileSync(rollupPathOf(path), rollupPathOf(stateAt(state)));
  }
});

/** Answers are exact at once, after more writes and changes, and when everything is rolled up. Returns how many traces were rolled at first. */
async function assertRecovers(path: string): Promise<number> {
  return withStore(path, async (store, teamId) => {
    const { seq } = await store.marks(teamId);
    await assertExact(store, teamId);
    await append(store, teamId, 20);
    await assertExact(store, teamId);
    await changeCosts(store, teamId);
    const traces = await assertExact(store, teamId);
    await rollUp(store);
    assert.equal((await store.marks(teamId)).seq, traces);
    await assertExact(store, teamId);
    assert.deepEqual(await verifyTeam(store, teamId), { traces, differences: [] });
    assert.deepEqual(await store.checkStorage(), []);
    return seq;
  });
}

describe('answers stay exact and the rollups are built again if, while no server runs, the rollup file', () => {
  const harms: Record<string, (rollupPath: string) => void | Promise<void>> = {
    'is deleted': (path) => rmSync(path),
    'is replaced by that of another store': async (path) => {
      const other = join(folder.path, `other-${++stores}.db`);
      await withStore(other, async (store, teamId) => {
        await append(store, teamId, 300);
        await rollUp(store);
      });
      copyFileSync(rollupPathOf(other), path);
    },
    'is empty': (path) => truncateSync(path, 0),
    'has only its first bytes': (path) => truncateSync(path, 50),
    'lacks its second half': (path) => truncateSync(path, statSync(path).size >> 1),
    'holds garbage': (path) => writeFileSync(path, randomBytes(statSync(path).size)),
    'has another schema': (path) => {
      using db = new DatabaseSync(path);
      db.exec('pragma user_version = 999');
    },
    'has lost its marks': (path) => {
      using db = new DatabaseSync(path);
      db.exec('delete from roll_marks');
    },
  };
  for (const [what, harm] of Object.entries(harms)) {
    test(what, async (t) => {
      t.diagnostic(`seed ${seed}`);
      const path = copyOf('new');
      await harm(rollupPathOf(path));
      assert.equal(await assertRecovers(path), 0);
    });
  }
});

test('an older rollup file of the same store is used, and what it lacks is added', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const path = copyOf('new');
  copyFileSync(rollupPathOf(stateAt('old')), rollupPathOf(path));
  assert.equal(await assertRecovers(path), 200);
});

test('after the database was replaced by an older copy of itself, newer rollups are not used', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const path = copyOf('old');
  copyFileSync(rollupPathOf(stateAt('new')), rollupPathOf(path));
  assert.equal(await assertRecovers(path), 0);
});

test('nor are they when an older copy of the database has caught up with other traces and changes', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const path = copyOf('old');
  await withStore(path, async (store, teamId) => {
    await append(store, teamId, 150);
    await changeCosts(store, teamId);
    await append(store, teamId, 100);
    await changeCosts(store, teamId);
    await changeCosts(store, teamId);
  });
  copyFileSync(rollupPathOf(stateAt('new')), rollupPathOf(path));
  assert.equal(await assertRecovers(path), 0);
});

test('nor are they when it has the same traces, and as many changes, but others', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const paths = [copyOf('old'), copyOf('old')] as const;
  for (const path of paths) {
    await withStore(path, async (store, teamId) => {
      await changeCosts(store, teamId);
      await rollUp(store);
    });
  }
  copyFileSync(rollupPathOf(paths[1]), rollupPathOf(paths[0]));
  assert.equal(await assertRecovers(paths[0]), 0);
});

test('a foreign SQLite database under the name of the rollup file is refused, and left untouched', async () => {
  const path = copyOf('new');
  const rollupPath = rollupPathOf(path);
  rmSync(rollupPath);
  {
    using db = new DatabaseSync(rollupPath);
    db.exec('create table mine (x); insert into mine values (1)');
  }
  const bytes = readFileSync(rollupPath);
  for (const role of ['server', 'tool'] as const) {
    await assert.rejects(open(path, { role }), (error: Error) => {
      assert.match(error.message, /-rollups\.db is an SQLite database, but not a rollup file/);
      assert.match(error.message, /It was not changed\..* move the file or choose another name/);
      return true;
    });
    assert.deepEqual(readFileSync(rollupPath), bytes);
  }
  rmSync(rollupPath);
  await assertRecovers(path);
});

test('without a rollup file a tool answers exactly, and does not make one', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const path = copyOf('new');
  rmSync(rollupPathOf(path));
  await withStore(
    path,
    async (store, teamId) => {
      const traces = await assertExact(store, teamId);
      assert.deepEqual(await verifyTeam(store, teamId), { traces, differences: [] });
      assert.deepEqual(await store.checkStorage(), []);
      const found = await store.lookUp(teamId, 'user_identifier', 'nobody', 1_000);
      assert.deepEqual(found, []);
    },
    { role: 'tool' },
  );
  assert.ok(!existsSync(rollupPathOf(path)));
});

test('a tool that makes the rollup file uses it from then on', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const path = copyOf('new');
  rmSync(rollupPathOf(path));
  await withStore(
    path,
    async (store, teamId) => {
      const traces = await assertExact(store, teamId);
      await rollUp(store);
      const { generation, seq } = await store.marks(teamId);
      assert.deepEqual([generation, seq], [1, traces]);
      await assertExact(store, teamId);
      await store.rebuild(teamId, 'Asia/Tokyo');
      assert.equal(await store.timeZone(teamId), 'Asia/Tokyo');
      await assertExact(store, teamId);
      assert.deepEqual(await verifyTeam(store, teamId), { traces, differences: [] });
    },
    { role: 'tool' },
  );
});

test('every write and change is in the next answer, while they are rolled up without pause', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const path = join(folder.path, 'racing.db');
  const rollTailRows = 1;
  await withStore(
    path,
    async (store, teamId) => {
      const run = await addSwapRun(store, teamId, 'racing');
      const costs: number[] = [];
      const cost = () => costs.reduce((sum, own) => sum + own, 0);
      for (let round = 0; round < 150; round++) {
        const own = Math.floor(random() * 20) / 4;
        costs.push(own);
        const drafts = [draftTrace({ model: 'm', user_identifier: `u${round}`, cost_usd: own })];
        await store.append([{ teamId, drafts }]);
        const after = await totalOf(store, teamId);
        assert.deepEqual([after.calls, Number(after.cost_picos) / 1e12], [costs.length, cost()]);
        await store.reprice(run, 0, round + 1, (traces) => {
          const trace = traces[Math.floor(random() * traces.length)] ?? assert.fail();
          const changed = Math.floor(random() * 20) / 4;
          costs[trace.seq - 1] = changed;
          const changes = [
            { trace, cost: { cost_usd: changed, cost_source: 'computed' as const } },
          ];
          return { changes, run };
        });
        const changed = await totalOf(store, teamId);
        assert.deepEqual(
          [changed.calls, Number(changed.cost_picos) / 1e12],
          [costs.length, cost()],
        );
      }
      assert.ok((await store.marks(teamId)).seq > 0, 'nothing was rolled up');
    },
    { rolling: 'automatic', rollTailRows },
  );
});

/** Starts the program on a store, and kills it after `work`. */
async function besideLoad(
  path: string,
  teamId: string,
  work: () => Promise<void>,
): Promise<number> {
  const args = ['write-and-swap.ts', path, teamId, String(Math.floor(random() * 2 ** 31))];
  const child = spawn(process.execPath, args, {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let stdout = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  const ended = new Promise<NodeJS.Signals | null>((resolve) =>
    child.once('close', (_code, signal) => resolve(signal)),
  );
  try {
    await eventually('an acknowledged trace', withinMs, () => stdout.includes('\n'), 5);
    await work();
  } finally {
    child.kill('SIGKILL');
  }
  assert.equal(await ended, 'SIGKILL', 'the program ended before it was killed');
  return Number(stdout.split('\n').at(-2));
}

const everyUser = {
  filter: {},
  groupBy: ['user_identifier'],
  range: null,
  interval: null,
} as const;

test('an answer beside writes, changes and rolls is the sum at one moment, and kills at any time change none', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const path = join(folder.path, 'killed.db');
  const teamId = await withStore(path, async (_store, id) => id);
  let [stored, answers, moments] = [0, 0, 0];
  // On a slow machine a round may see hardly any of them.
  const isEnough = (): boolean => moments > 10;
  for (let round = 0; round < 4 || (round < 30 && !isEnough()); round++) {
    const acknowledged = await besideLoad(path, teamId, async () => {
      const untilMs = performance.now() + 1_000 + random() * 500;
      await withStore(
        path,
        async (store) => {
          let last = 0;
          while (performance.now() < untilMs) {
            const total = await totalOf(store, teamId);
            const users = await talliesOf(store, teamId, everyUser);
            const inUsers = users.reduce((sum, { measures }) => sum + measures.cost_picos, 0n);
            const calls = users.reduce((sum, { measures }) => sum + measures.calls, 0);
            for (const [count, picos] of [
              [total.calls, total.cost_picos],
              [calls, inUsers],
            ] as const) {
              assert.equal(count % 3, 0, 'a part of a write');
              assert.equal(Number(picos) / 1e12, count * meanCost, `of ${count} calls`);
              assert.ok(count >= last, `${count} calls after ${last}`);
              if (count > last) moments += 1;
              last = count;
            }
            answers += 2;
          }
        },
        { role: 'tool' },
      );
      await sleep(random() * 50);
    });
    await withStore(
      path,
      async (store) => {
        const { traces, differences } = await verifyTeam(store, teamId);
        assert.deepEqual(differences, []);
        assert.ok(traces >= stored + acknowledged, `${traces} of ${stored + acknowledged}`);
        stored = traces;
        await assertExact(store, teamId);
      },
      { role: 'tool' },
    );
  }
  await withStore(path, async (store) => {
    await rollUp(store);
    await assertExact(store, teamId);
    assert.deepEqual(await verifyTeam(store, teamId), { traces: stored, differences: [] });
  });
  assert.ok(isEnough(), `${moments} moments`);
  t.diagnostic(`${answers} answers at ${moments} moments, ${stored} traces`);
});

test('a stopped server leaves two files and the lock', async () => {
  const path = join(mkdir(), 'stopped.db');
  await withStore(path, async (store, teamId) => append(store, teamId, 10), {
    rolling: 'automatic',
  });
  const left = readdirSync(dirname(path)).filter((name) => !name.endsWith('.lock'));
  const full = left.filter((name) => statSync(join(dirname(path), name)).size > 0);
  assert.deepEqual(full.filter((name) => !name.endsWith('-shm')).sort(), [
    'stopped-rollups.db',
    'stopped.db',
  ]);
});

function mkdir(): string {
  const { path } = temporaryFolder();
  after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
