import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { limits } from '../../src/limits.ts';
import type { Lane } from '../../src/store/postgres/lane.ts';
import type { StoreBatch } from '../../src/store/postgres/store-batch.ts';
import { Writer } from '../../src/store/postgres/writer.ts';
import type { TraceWrite, WriteOutcome } from '../../src/store/trace-writer.ts';

const enough = limits.postgresFollowingRowsMin;

/** Transactions that end when the test says so. They are of one lane. */
function openTransactions() {
  const lane = {} as Lane;
  const running: { writes: readonly TraceWrite[]; end(): Promise<void> }[] = [];
  const store: StoreBatch = {
    laneOf: () => (running.length > 0 ? lane : null),
    nodeOf: () => 0,
    ofTeam: () => assert.fail('no team is locked'),
    ofTeams(writes) {
      const { promise, resolve } = Promise.withResolvers<readonly WriteOutcome[]>();
      running.push({
        writes,
        async end() {
          running.splice(running.indexOf(this), 1);
          resolve(writes.map(() => ({ kind: 'stored', stamps: [] })));
          await turn();
        },
      });
      return promise;
    },
  };
  return { store, running, sizes: () => running.map(({ writes }) => writes.length) };
}

const writesOf = (teamId: string, count: number): TraceWrite[] =>
  Array.from({ length: count }, () => ({
    teamId,
    drafts: [{ model: 'm' } as TraceWrite['drafts'][number]],
    request: null,
    calls: null,
  }));

test('as long as writes wait, the next transaction is under way before the running one has ended', async () => {
  const { store, running, sizes } = openTransactions();
  const writer = new Writer(store, false);
  void writer.append(writesOf('a', 1));
  assert.deepEqual(sizes(), [1]);
  for (let i = 0; i < 5; i++) {
    void writer.append(writesOf('a', enough));
    assert.deepEqual(sizes(), [running[0]?.writes.length, enough], `transaction ${i}`);
    await running[0]?.end();
  }
});

test('few writes wait until the running transaction has ended, and never is a third one under way', async () => {
  const { store, running, sizes } = openTransactions();
  const writer = new Writer(store, false);
  void writer.append(writesOf('a', 1));
  void writer.append(writesOf('a', enough - 1));
  assert.deepEqual(sizes(), [1]);
  void writer.append(writesOf('a', 1));
  assert.deepEqual(sizes(), [1, enough]);
  void writer.append(writesOf('a', 2 * enough));
  assert.deepEqual(sizes(), [1, enough]);
  await running[0]?.end();
  assert.deepEqual(sizes(), [enough, 2 * enough]);
});

test('the first writes of a turn are sent while more are being read, and enough others follow them', () => {
  const { store, sizes } = openTransactions();
  const writer = new Writer(store, false);
  void writer.append(writesOf('a', 1), true);
  assert.deepEqual(sizes(), [1]);
  void writer.append(writesOf('a', enough - 1), true);
  assert.deepEqual(sizes(), [1]);
  void writer.append(writesOf('a', 1), true);
  assert.deepEqual(sizes(), [1, enough]);
});

test('while more writes are being read and a transaction is running, those of other teams wait for one another', () => {
  const { store, sizes } = openTransactions();
  const writer = new Writer(store, false);
  void writer.append(writesOf('a', 1), true);
  void writer.append(writesOf('b', enough), true);
  void writer.append(writesOf('c', enough), true);
  assert.deepEqual(sizes(), [1]);
  void writer.append(writesOf('d', 1));
  assert.deepEqual(sizes(), [1, 2 * enough + 1]);
});

test('on a cluster writes wait until all of a turn are read, since a transaction of few costs as much as one of many', () => {
  const { store, sizes } = openTransactions();
  const writer = new Writer(store, true);
  void writer.append(writesOf('a', enough), true);
  assert.deepEqual(sizes(), []);
  void writer.append(writesOf('b', 1));
  assert.deepEqual(sizes(), [enough + 1]);
});

test('a place among the transactions for many teams is given back once, however transactions follow one another', async () => {
  const { store, running, sizes } = openTransactions();
  const writer = new Writer(store, false);
  for (let i = 0; i < 5; i++) {
    void writer.append([...writesOf('a', 1), ...writesOf('b', 1)]);
    void writer.append(writesOf('a', enough));
    await running[0]?.end();
    void writer.append(writesOf('b', 1));
    // Follows two transactions, one of each team.
    void writer.append([...writesOf('a', enough), ...writesOf('b', 1)]);
    assert.deepEqual(sizes(), [enough, 1, enough + 1]);
    await running[0]?.end();
    await running[0]?.end();
    await running[0]?.end();
  }
  for (let i = 0; i <= limits.postgresSharedWritersMax; i++)
    void writer.append(writesOf(`${i}`, 1));
  assert.equal(running.length, limits.postgresSharedWritersMax);
});

test('transactions that follow one another take one place of those for many teams', async () => {
  const { store, running, sizes } = openTransactions();
  const writer = new Writer(store, false);
  void writer.append(writesOf('a', 1));
  void writer.append(writesOf('a', enough));
  await running[0]?.end();
  assert.deepEqual(sizes(), [enough]);
  // One place is still taken, so as many others as there are places left.
  for (let i = 1; i <= limits.postgresSharedWritersMax; i++) {
    void writer.append(writesOf(`b${i}`, 1));
  }
  assert.equal(running.length, limits.postgresSharedWritersMax);
  await running[0]?.end();
  assert.equal(running.length, limits.postgresSharedWritersMax);
  await running[0]?.end();
  await running[0]?.end();
  await writer.drain();
});

test('busy teams, whose transactions follow one another, keep no other team waiting', async () => {
  const { store, running } = openTransactions();
  const lanes = new Map<string, Lane>();
  store.laneOf = (teamId) => lanes.getOrInsertComputed(teamId, () => ({}) as Lane);
  const writer = new Writer(store, false);
  const busy = Array.from({ length: limits.postgresSharedWritersMax }, (_, i) => `busy ${i}`);
  for (const teamId of busy) void writer.append(writesOf(teamId, enough));
  void writer.append(writesOf('other', 1));
  const isUnderWay = (): boolean =>
    running.some(({ writes }) => writes.some(({ teamId }) => teamId === 'other'));
  let ended = 0;
  for (; ended < 20 && !isUnderWay(); ended++) {
    for (const teamId of busy) void writer.append(writesOf(teamId, enough));
    await running[0]?.end();
  }
  assert.ok(isUnderWay() && ended <= 2, `${ended} transactions have ended`);
});

test('on a cluster the teams of each node share a transaction, one at a time, and a team without a known node has its own', async () => {
  const { store, running } = openTransactions();
  const nodes: Record<string, number> = { a1: 1, b1: 1, c2: 2 };
  const apart: string[] = [];
  const writer = new Writer(
    {
      ...store,
      laneOf: () => null,
      nodeOf: (teamId) => nodes[teamId] ?? null,
      ofTeam(teamId, writes) {
        apart.push(teamId);
        return Promise.resolve(writes.map(() => ({ kind: 'stored', stamps: [] })));
      },
    },
    true,
  );
  const teamsOf = () => running.map(({ writes }) => writes.map(({ teamId }) => teamId).join(' '));
  void writer.append(['a1', 'c2', 'b1', 'x', 'b1'].flatMap((teamId) => writesOf(teamId, 1)));
  assert.deepEqual(teamsOf(), ['a1 b1 b1', 'c2']);
  assert.deepEqual(apart, ['x']);
  nodes['d1'] = 1;
  void writer.append(writesOf('d1', enough));
  assert.deepEqual(teamsOf(), ['a1 b1 b1', 'c2'], 'the node is busy');
  await running[0]?.end();
  assert.deepEqual(teamsOf(), ['c2', Array(enough).fill('d1').join(' ')]);
});

test('on a cluster a team whose shared transaction stored nothing gets one of its own, then shares again', async () => {
  const { store, running } = openTransactions();
  const apart: string[] = [];
  let isLocked = true;
  const writer = new Writer(
    {
      ...store,
      laneOf: () => null,
      ofTeams: (writes) =>
        isLocked ? Promise.resolve(writes.map(() => ({ kind: 'locked' }))) : store.ofTeams(writes),
      ofTeam(teamId, writes) {
        apart.push(teamId);
        return Promise.resolve(writes.map(() => ({ kind: 'stored', stamps: [] })));
      },
    },
    true,
  );
  await writer.append([...writesOf('a', 2), ...writesOf('b', 1)]);
  assert.deepEqual(apart, ['a', 'b']);
  isLocked = false;
  void writer.append([...writesOf('a', 1), ...writesOf('b', 1)]);
  assert.deepEqual(apart, ['a', 'b']);
  assert.equal(running.length, 1);
});
