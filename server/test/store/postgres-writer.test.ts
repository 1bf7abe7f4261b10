import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { limits } from '../../src/limits.ts';
import type { CallConnection } from '../../src/store/postgres/call-connection.ts';
import type { BatchOutcome, StoreBatch } from '../../src/store/postgres/store-batch.ts';
import { Writer } from '../../src/store/postgres/writer.ts';
import type { TraceWrite } from '../../src/store/trace-writer.ts';

const enough = limits.postgresFollowingRowsMin;

interface Call {
  writes: readonly TraceWrite[];
  connection: CallConnection;
  end(): Promise<void>;
}

const stored = (writes: readonly TraceWrite[]): BatchOutcome[] =>
  writes.map(() => ({ kind: 'stored', stamps: [] }));

/** Calls that end when the test says so. */
function openCalls() {
  const running: Call[] = [];
  const store: StoreBatch = {
    openConnection: () => ({}) as CallConnection,
    nodeOf: () => 0,
    ofTeam: () => assert.fail('no team is locked'),
    ofTeams(writes, connection) {
      const { promise, resolve } = Promise.withResolvers<BatchOutcome[]>();
      running.push({
        writes,
        connection,
        async end() {
          running.splice(running.indexOf(this), 1);
          resolve(stored(writes));
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

test('as long as writes wait, the next call is under way before the running one has ended', async () => {
  const { store, running, sizes } = openCalls();
  const writer = new Writer(store, false);
  void writer.append(writesOf('a', 1));
  assert.deepEqual(sizes(), [1]);
  for (let i = 0; i < 5; i++) {
    void writer.append(writesOf('a', enough));
    assert.deepEqual(sizes(), [running[0]?.writes.length, enough], `call ${i}`);
    await running[0]?.end();
  }
});

test('few writes wait until the running call has ended, and never is a third one under way', async () => {
  const { store, running, sizes } = openCalls();
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
  const { store, sizes } = openCalls();
  const writer = new Writer(store, false);
  void writer.append(writesOf('a', 1), true);
  assert.deepEqual(sizes(), [1]);
  void writer.append(writesOf('a', enough - 1), true);
  assert.deepEqual(sizes(), [1]);
  void writer.append(writesOf('a', 1), true);
  assert.deepEqual(sizes(), [1, enough]);
});

test('while more writes are being read, one connection is used', () => {
  const { store, sizes } = openCalls();
  const writer = new Writer(store, false);
  void writer.append(writesOf('a', 1), true);
  void writer.append(writesOf('b', enough - 1), true);
  assert.deepEqual(sizes(), [1]);
  void writer.append(writesOf('c', 1));
  assert.deepEqual(sizes(), [1, enough]);
});

test('calls of one team follow each other on one connection, and calls of another team need not wait for them', async () => {
  const { store, running, sizes } = openCalls();
  const writer = new Writer(store, false);
  void writer.append(writesOf('a', 1));
  void writer.append(writesOf('a', enough));
  void writer.append(writesOf('b', 1));
  assert.deepEqual(sizes(), [1, enough, 1]);
  const [first, second, third] = running;
  assert.equal(first?.connection, second?.connection);
  assert.notEqual(first?.connection, third?.connection);
  void writer.append([...writesOf('a', enough), ...writesOf('b', 1)]);
  await third?.end();
  // Calls of the first team wait for a place on their connection.
  assert.deepEqual(sizes(), [1, enough, 1]);
  await first?.end();
  assert.deepEqual(sizes(), [enough, 1, enough]);
  for (const call of running.slice()) await call.end();
  await writer.drain();
});

test('connections are given back, however calls follow one another', async () => {
  const { store, running } = openCalls();
  const writer = new Writer(store, false);
  for (let i = 0; i < 5; i++) {
    void writer.append([...writesOf('a', enough), ...writesOf('b', 1)]);
    void writer.append(writesOf('a', enough));
    void writer.append(writesOf('b', enough));
    while (running.length > 0) await running[0]?.end();
  }
  await writer.drain();
  for (let i = 0; i <= limits.postgresSharedWritersMax; i++)
    void writer.append(writesOf(`${i}`, 1));
  assert.equal(running.length, limits.postgresSharedWritersMax);
});

test('busy teams, whose calls follow one another, keep no other team waiting', async () => {
  const { store, running } = openCalls();
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
  assert.ok(isUnderWay() && ended <= 2, `${ended} calls have ended`);
});

test('on a cluster writes wait until all of a turn are read, since a call with few costs as much as one with many', () => {
  const { store, sizes } = openCalls();
  const writer = new Writer(store, true);
  void writer.append(writesOf('a', enough), true);
  assert.deepEqual(sizes(), []);
  void writer.append(writesOf('b', 1));
  assert.deepEqual(sizes(), [enough + 1]);
});

test('on a cluster the teams of each node share a call, and so do those whose nodes are not known', async () => {
  const { store, running } = openCalls();
  const nodes: Record<string, number> = { a1: 1, b1: 1, c2: 2 };
  const writer = new Writer({ ...store, nodeOf: (teamId) => nodes[teamId] ?? null }, true);
  const teamsOf = () => running.map(({ writes }) => writes.map(({ teamId }) => teamId).join(' '));
  void writer.append(['a1', 'c2', 'b1', 'x', 'b1', 'y'].flatMap((teamId) => writesOf(teamId, 1)));
  assert.deepEqual(teamsOf(), ['a1 b1 b1', 'c2']);
  await running[1]?.end();
  assert.deepEqual(teamsOf(), ['a1 b1 b1', 'x y']);
  nodes['d1'] = 1;
  void writer.append(writesOf('d1', 1));
  assert.deepEqual(teamsOf(), ['a1 b1 b1', 'x y'], 'the node is busy');
  await running[0]?.end();
  assert.deepEqual(teamsOf(), ['x y', 'd1']);
});

test('a team that was locked gets a call of its own, one at a time, then shares again', async () => {
  const { store, running } = openCalls();
  const apart: string[][] = [];
  let isLocked = true;
  const free = Promise.withResolvers<void>();
  const writer = new Writer(
    {
      ...store,
      ofTeams: (writes, connection) =>
        isLocked
          ? Promise.resolve(
              writes.map(({ teamId }) =>
                teamId === 'locked' ? { kind: 'locked' } : { kind: 'stored', stamps: [] },
              ),
            )
          : store.ofTeams(writes, connection),
      async ofTeam(writes) {
        apart.push(writes.map(({ teamId }) => teamId));
        await free.promise;
        return stored(writes);
      },
    },
    false,
  );
  const both = writer.append([...writesOf('locked', 2), ...writesOf('b', 1)]);
  await turn();
  assert.deepEqual(apart, [['locked', 'locked']]);
  const later = writer.append([...writesOf('locked', 1), ...writesOf('b', 1)]);
  await turn();
  assert.deepEqual(apart, [['locked', 'locked']]);
  isLocked = false;
  free.resolve();
  await both;
  await turn();
  while (running.length > 0) await running[0]?.end();
  await later;
  assert.deepEqual(apart, [['locked', 'locked']]);
});
