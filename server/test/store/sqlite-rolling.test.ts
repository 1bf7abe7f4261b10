import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { rollupPathOf } from '../../src/store/sqlite/rollup-file.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import type { SqliteOptions } from '../../src/store/sqlite/open-sqlite-store.ts';
import type { RollFailure, Store } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { mountTmpfs } from '../process/helpers.ts';
import { eventually } from '../support/eventually.ts';
import { skipUnlessCi } from '../support/skip.ts';
import { runSql } from '../support/store-place.ts';
import { temporaryFolder, totalOf } from '../support/service.ts';

const withinMs = 120_000;

async function withStore(
  options: Partial<SqliteOptions>,
  work: (store: Store, path: string, teamId: string) => Promise<void>,
): Promise<void> {
  const folder = temporaryFolder();
  const path = join(folder.path, 'rolling.db');
  const store = await openSqliteStore({
    path,
    clock: { kind: 'system' },
    role: 'server',
    ...options,
  });
  try {
    const { team } = await store.ensureTeam('t', 1);
    await work(store, path, team.id);
  } finally {
    await store.close();
    folder.remove();
  }
}

async function append(store: Store, teamId: string, count: number): Promise<void> {
  const drafts = Array.from({ length: count }, (_, i) =>
    draftTrace({ model: `m${i % 3}`, user_identifier: `u${i % 7}`, latency_ms: i, cost_usd: 0.5 }),
  );
  const [outcome] = await store.append([{ teamId, drafts }]);
  assert.equal(outcome?.kind, 'stored');
}

async function rolledSeq(store: Store, teamId: string) {
  return (await store.marks(teamId)).seq;
}

const never = 1_000_000;

test('when the writer is idle every trace is rolled up', () =>
  withStore({ rollTailRows: never }, async (store, _path, teamId) => {
    await append(store, teamId, 50);
    await eventually('rollups of all traces', withinMs, async () => {
      return (await rolledSeq(store, teamId)) === 50;
    });
    assert.deepEqual(await verifyTeam(store, teamId), { traces: 50, differences: [] });
  }));

test('a tail over its bound is rolled up while writes go on, and every answer is complete', () =>
  withStore({ rollTailRows: 1 }, async (store, _path, teamId) => {
    let count = 0;
    let rolled = 0;
    const startMs = performance.now();
    while (rolled === 0 || count < 500) {
      await append(store, teamId, 5);
      count += 5;
      assert.equal((await totalOf(store, teamId)).calls, count);
      rolled = await rolledSeq(store, teamId);
      assert.ok(performance.now() - startMs < withinMs, JSON.stringify(rolled));
    }
    assert.deepEqual(await verifyTeam(store, teamId), { traces: count, differences: [] });
  }));

test('traces that were not rolled up before a stop are rolled up after the next start', async () => {
  const folder = temporaryFolder();
  const options = {
    path: join(folder.path, 'a.db'),
    clock: { kind: 'system' },
    role: 'server',
  } as const;
  const first = await openSqliteStore({ ...options, rolling: 'manual' });
  const { team } = await first.ensureTeam('t', 1);
  await append(first, team.id, 20);
  assert.equal(await rolledSeq(first, team.id), 0);
  await first.close();
  const second = await openSqliteStore(options);
  try {
    await eventually('rollups of all traces', withinMs, async () => {
      return (await rolledSeq(second, team.id)) === 20;
    });
  } finally {
    await second.close();
    folder.remove();
  }
});

test('a server rolls up traces that another process has written', () =>
  withStore({}, async (store, path, teamId) => {
    const options = { path, clock: { kind: 'system' }, role: 'tool', rolling: 'manual' } as const;
    const tool = await openSqliteStore(options);
    await append(tool, teamId, 30);
    await tool.close();
    await eventually('rollups of all traces', withinMs, async () => {
      return (await rolledSeq(store, teamId)) === 30;
    });
  }));

test('a roll that fails is reported and tried again, and no write fails', async () => {
  const failures: RollFailure[] = [];
  const options = {
    rollTailRows: 1,
    onRollFailed: (failure: RollFailure) => void failures.push(failure),
  };
  await withStore(options, async (store, path, teamId) => {
    await append(store, teamId, 10);
    await eventually('a first roll', withinMs, async () => (await rolledSeq(store, teamId)) === 10);
    const place = { kind: 'sqlite', path: rollupPathOf(path) } as const;
    await runSql(
      place,
      `create trigger refuse before insert on rollups begin select raise(abort, 'refused by a test'); end`,
    );
    await append(store, teamId, 10);
    await eventually('a reported failure', withinMs, () => failures.length > 0);
    assert.deepEqual(failures[0], { teamId, reason: 'refused by a test' });
    for (let i = 0; i < 20; i++) await append(store, teamId, 1);
    await store.ping();
    assert.equal(await rolledSeq(store, teamId), 10);
    await runSql(place, 'drop trigger refuse');
    await eventually(
      'the roll that succeeds',
      withinMs,
      async () => (await rolledSeq(store, teamId)) === 40,
    );
    assert.equal((await totalOf(store, teamId)).calls, 40);
    assert.deepEqual(await verifyTeam(store, teamId), { traces: 40, differences: [] });
  });
});

test('while another process holds the lock of the rollup file nothing is rolled up, and nothing is reported', async () => {
  const failures: RollFailure[] = [];
  const onRollFailed = (failure: RollFailure) => void failures.push(failure);
  const rollTailRows = 1;
  await withStore({ onRollFailed, rollTailRows }, async (store, path, teamId) => {
    {
      using other = new DatabaseSync(rollupPathOf(path), { timeout: 5_000 });
      other.exec('begin immediate');
      await append(store, teamId, 3);
      assert.equal((await totalOf(store, teamId)).calls, 3);
      // Long enough for several attempts.
      await delay(4 * limits.rollPollMs);
      assert.equal(await rolledSeq(store, teamId), 0);
      other.exec('rollback');
    }
    await eventually('rollups', withinMs, async () => (await rolledSeq(store, teamId)) === 3);
    assert.deepEqual(failures, []);
  });
});

const rebuildChild = fileURLToPath(new URL('rebuild-until-killed.ts', import.meta.url));

test('a rebuild that was killed changes no answer; the next one continues or starts over, and leaves nothing behind', () =>
  withStore({ rolling: 'manual' }, async (store, path, teamId) => {
    const count = 6_000;
    await append(store, teamId, count);
    const generations = async () => {
      const place = { kind: 'sqlite', path: rollupPathOf(path) } as const;
      const rows = await runSql(
        place,
        'select generation from rollups union select generation from roll_marks',
      );
      return rows.map(({ generation }) => generation);
    };
    while ((await store.roll(teamId, count)) > 0);
    for (const [zone, steps] of [
      ['Asia/Tokyo', 1],
      ['Asia/Tokyo', 3],
      ['Europe/Berlin', 2],
    ] as const) {
      const args = [rebuildChild, `sqlite:${path}`, teamId, zone, String(steps)];
      const killed = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 });
      assert.equal(killed.signal, 'SIGKILL', killed.stderr);
      assert.equal(await store.timeZone(teamId), 'UTC');
      assert.equal((await totalOf(store, teamId)).calls, count);
      assert.deepEqual(await verifyTeam(store, teamId), { traces: count, differences: [] });
    }
    const rolled: number[] = [];
    await store.rebuild(teamId, 'Europe/Berlin', (seq) => void rolled.push(seq));
    assert.ok((rolled[0] ?? 0) >= 1_024, 'it started over');
    assert.equal((await generations()).length, 1);
    assert.equal(await store.timeZone(teamId), 'Europe/Berlin');
    assert.deepEqual(await verifyTeam(store, teamId), { traces: count, differences: [] });
  }));

test('on a full disk rolls fail, answers stay complete, and rolling goes on when there is room', async (t) => {
  const mount = await mountTmpfs(t, 'size=4m');
  if (mount.kind === 'impossible') return skipUnlessCi(t, mount.reason);
  const failures: RollFailure[] = [];
  const store = await openSqliteStore({
    path: join(mount.folder, 'small.db'),
    clock: { kind: 'system' },
    role: 'server',
    rollTailRows: never,
    onRollFailed: (failure) => void failures.push(failure),
  });
  const filler = join(mount.folder, 'filler');
  try {
    const { team } = await store.ensureTeam('t', 1);
    let stored = 0;
    const isStored = async (count: number) => {
      const drafts = Array.from({ length: count }, (_, i) =>
        draftTrace({ model: `m${stored + i}`, user_identifier: `u${stored + i}` }),
      );
      const [outcome] = await store.append([{ teamId: team.id, drafts }]);
      if (outcome?.kind === 'stored') stored += count;
      else assert.equal(outcome?.kind === 'failed' && outcome.code, 'disk_full');
      return outcome?.kind === 'stored';
    };
    // The roll begins a moment after the write. Once in a while it may be faster than the disk is full.
    await eventually('a failed roll', withinMs, async () => {
      rmSync(filler, { force: true });
      assert.ok(await isStored(100));
      fillDisk(filler);
      return eventually('a failed roll', 1_000, () => failures.length > 0, 10).catch(() => false);
    });
    assert.equal((await totalOf(store, team.id)).calls, stored);
    rmSync(filler);
    await eventually('a stored trace', withinMs, () => isStored(1));
    await eventually('rollups of all traces', withinMs, async () => {
      return (await rolledSeq(store, team.id)) === stored;
    });
    assert.equal((await totalOf(store, team.id)).calls, stored);
    assert.deepEqual(await verifyTeam(store, team.id), { traces: stored, differences: [] });
  } finally {
    await store.close();
  }
});

function fillDisk(filler: string): void {
  for (const bytes of [65_536, 4096, 1]) {
    try {
      for (;;) appendFileSync(filler, Buffer.alloc(bytes));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
    }
  }
}
