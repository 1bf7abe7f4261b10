import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { inTransaction, openWriting } from '../../src/store/sqlite/connection.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { PendingRolls } from '../../src/store/sqlite/pending-rolls.ts';
import { openRollupTables } from '../../src/store/sqlite/rollup-tables.ts';
import type { AddedTraces } from '../../src/store/sqlite/writer.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { temporaryFolder } from '../support/service.ts';

const teamNo = 1;

/** A store that rolls only on request, and the batches of another connection to its file. */
async function openLab(t: TestContext) {
  const folder = temporaryFolder();
  const path = join(folder.path, 'pending.db');
  const clock = { kind: 'system' } as const;
  const store = await openSqliteStore({ path, clock, role: 'server', rolling: 'manual' });
  const { team } = await store.ensureTeam('t', 1);
  const db = openWriting(path);
  t.after(async () => {
    db.close();
    await store.close();
    folder.remove();
  });
  const tables = openRollupTables(db);
  const pending = { hot: new PendingRolls(tables, 'hot'), wide: new PendingRolls(tables, 'wide') };
  let stored = 0;
  return {
    ...pending,
    store,
    teamId: team.id,
    /** Stores traces, as the writer would before it adds them to a batch. */
    async commit(rows: number, userOf = (i: number) => `u${i % 200}`): Promise<AddedTraces> {
      const firstSeq = stored + 1;
      const drafts = Array.from({ length: rows }, (_, i) =>
        draftTrace({ model: `m${i % 3}`, user_identifier: userOf(i), latency_ms: firstSeq + i }),
      );
      const [outcome] = await store.append([{ teamId: team.id, drafts }]);
      if (outcome?.kind !== 'stored') assert.fail('the traces are not stored');
      stored += rows;
      return { firstSeq, drafts, stamps: outcome.stamps };
    },
    step: (speed: 'hot' | 'wide', rowsMax = 100) =>
      inTransaction(db, () => pending[speed].step(teamNo, rowsMax, stored)),
    async rolledSeq() {
      return (await store.marks(team.id)).rolledSeq;
    },
    async verify() {
      const expected = { traces: stored, differences: [] };
      assert.deepEqual(await verifyTeam(store, team.id), expected);
    },
  };
}

type Lab = Awaited<ReturnType<typeof openLab>>;

/** Returns how many traces were read. */
function finish(lab: Lab, speed: 'hot' | 'wide'): number {
  for (let read = 0, steps = 0; ; steps++) {
    assert.ok(steps < 20, 'it does not end');
    const step = lab.step(speed);
    read += step.read;
    if (step.isDone) return read;
  }
}

test('traces that something else rolls up while they are gathered are counted once', async (t) => {
  const lab = await openLab(t);
  await lab.commit(300);
  assert.deepEqual(lab.step('wide'), { read: 100, rolled: 0, isDone: false });
  assert.equal(lab.wide.begunTeamNo, teamNo);
  assert.equal((await lab.rolledSeq()).wide, 0, 'nothing is stored yet');
  assert.equal(await lab.store.roll(lab.teamId, 'wide', 50), 50);
  finish(lab, 'wide');
  assert.equal((await lab.rolledSeq()).wide, 300);
  await lab.verify();
});

test('many lookups are stored in a step of their own before the sums, and writes between the two are in both', async (t) => {
  const lab = await openLab(t);
  const users = limits.lookupsWithSumsMax;
  lab.wide.add(teamNo, [await lab.commit(users, (i) => `user-${i}`)], 0);
  assert.deepEqual(lab.step('wide'), { read: 0, rolled: 0, isDone: false });
  assert.equal((await lab.rolledSeq()).wide, 0, 'the mark moves with the sums');
  lab.wide.add(teamNo, [await lab.commit(10, () => 'user-0')], 0);
  assert.deepEqual(lab.step('wide'), { read: 0, rolled: users + 10, isDone: true });
  assert.equal((await lab.store.lookUp(lab.teamId, 'user_identifier', 'user-0')).length, 11);
  await lab.verify();
});

for (const speed of ['hot', 'wide'] as const) {
  test(`${speed} sets: traces that were added when they were committed are not read again`, async (t) => {
    const lab = await openLab(t);
    for (let i = 0; i < 3; i++) lab[speed].add(teamNo, [await lab.commit(100)], 0);
    assert.deepEqual(lab.step(speed), { read: 0, rolled: 300, isDone: true });
    assert.equal((await lab.rolledSeq())[speed], 300);
    lab[speed].add(teamNo, [await lab.commit(50)], 300);
    assert.deepEqual(lab.step(speed), { read: 0, rolled: 50, isDone: true });
    await lab.verify();
  });

  test(`${speed} sets: traces of a commit that a batch has missed are read, and those after them too`, async (t) => {
    const lab = await openLab(t);
    lab[speed].add(teamNo, [await lab.commit(10)], 0);
    await lab.commit(20);
    lab[speed].add(teamNo, [await lab.commit(30)], 0);
    assert.equal(finish(lab, speed), 50);
    assert.equal((await lab.rolledSeq())[speed], 60);
    await lab.verify();
  });

  test(`${speed} sets: a mark that is not where it is supposed to be begins no batch`, async (t) => {
    const lab = await openLab(t);
    await lab.commit(10);
    lab[speed].add(teamNo, [await lab.commit(10)], 10);
    assert.equal(finish(lab, speed), 20);
    await lab.verify();
  });

  test(`${speed} sets: added traces that something else rolls up are counted once`, async (t) => {
    const lab = await openLab(t);
    lab[speed].add(teamNo, [await lab.commit(100)], 0);
    assert.equal(await lab.store.roll(lab.teamId, speed, 40), 40);
    lab[speed].add(teamNo, [await lab.commit(10)], 0);
    assert.equal(finish(lab, speed), 70, 'the rest is read from the file');
    await lab.verify();
  });

  test(`${speed} sets: traces that are committed while others are read are added to the same batch`, async (t) => {
    const lab = await openLab(t);
    await lab.commit(150);
    assert.equal(lab.step(speed).read, 100);
    assert.equal(lab.step(speed).read, 50);
    lab[speed].add(teamNo, [await lab.commit(25)], 0);
    assert.deepEqual(lab.step(speed), { read: 0, rolled: 175, isDone: true });
    await lab.verify();
  });

  test(`${speed} sets: what was added before a rebuild is dropped`, async (t) => {
    const lab = await openLab(t);
    lab[speed].add(teamNo, [await lab.commit(100)], 0);
    await lab.store.rebuild(lab.teamId, 'Asia/Kathmandu');
    lab[speed].add(teamNo, [await lab.commit(10)], 0);
    finish(lab, speed);
    await lab.verify();
  });
}

test('lookups of many values are stored before the sums, and those of few values with them', async (t) => {
  const lab = await openLab(t);
  const few = await lab.commit(100);
  lab.wide.add(teamNo, [few], 0);
  const many = await lab.commit(limits.pendingLookupsMax, (i) => `other ${i}`);
  lab.wide.add(teamNo, [many], 0);
  lab.wide.storeLookups(teamNo);
  const { rolled } = lab.step('wide');
  assert.equal(rolled, few.drafts.length + many.drafts.length);
  const found = await lab.store.lookUp(lab.teamId, 'user_identifier', 'u7');
  assert.deepEqual(found, [8]);
  await lab.verify();
});

test('a batch says when it is full, and traces of a full batch are read later', async (t) => {
  const lab = await openLab(t);
  const rows = 4_000;
  let isFull = false;
  let commits = 0;
  for (; !isFull; commits++) {
    assert.ok(commits < 20, 'it never becomes full');
    const added = await lab.commit(rows, (i) => `user ${commits} ${i}`);
    isFull = lab.wide.add(teamNo, [added], 0);
  }
  for (let more = 0; more < 3; more++) {
    lab.wide.add(teamNo, [await lab.commit(rows, (i) => `more ${more} ${i}`)], 0);
  }
  const first = lab.step('wide', rows);
  assert.equal(first.read, 0);
  assert.ok(first.rolled < (commits + 3) * rows, 'it grew without bound');
  for (let steps = 0; (await lab.rolledSeq()).wide < (commits + 3) * rows; steps++) {
    assert.ok(steps < 20, 'it does not end');
    lab.step('wide', rows);
  }
  await lab.verify();
});

test('an error while traces are added drops the batch, and they are counted once', async (t) => {
  const lab = await openLab(t);
  const added = await lab.commit(10);
  const broken = added.drafts.map((draft, i) => (i < 9 ? draft : noDraft));
  assert.throws(() => lab.wide.add(teamNo, [{ ...added, drafts: broken }], 0), TypeError);
  assert.equal(finish(lab, 'wide'), 10);
  await lab.verify();
});

/** Its fields cannot be read. */
const noDraft = new Proxy({} as AddedTraces['drafts'][number], {
  get() {
    throw new TypeError('a test');
  },
});
