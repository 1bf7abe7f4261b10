import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { inTransaction, openWriting } from '../../src/store/sqlite/connection.ts';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { openRollupTables } from '../../src/store/sqlite/rollup-tables.ts';
import { WideRoll } from '../../src/store/sqlite/wide-roll.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { temporaryFolder } from '../support/service.ts';

test('traces that something else rolls up while they are gathered are counted once', async () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'wide.db');
  const clock = { kind: 'system' } as const;
  const store = await openSqliteStore({ path, clock, role: 'server', rolling: 'manual' });
  const { team } = await store.ensureTeam('t', 1);
  const drafts = Array.from({ length: 300 }, (_, i) =>
    draftTrace({ model: 'm', user_identifier: `u${i % 200}`, latency_ms: i }),
  );
  await store.append([{ teamId: team.id, drafts }]);
  const db = openWriting(path);
  try {
    const wide = new WideRoll(openRollupTables(db));
    const step = () => inTransaction(db, () => wide.step(1, 100));
    assert.deepEqual(step(), { read: 100, isDone: false });
    assert.equal(wide.teamNo, 1);
    assert.equal((await store.marks(team.id)).rolledSeq.wide, 0, 'nothing is stored yet');
    assert.equal(await store.roll(team.id, 'wide', 50), 50);
    for (let steps = 0; !step().isDone; steps++) assert.ok(steps < 20, 'it does not end');
    assert.equal((await store.marks(team.id)).rolledSeq.wide, 300);
    assert.deepEqual(await verifyTeam(store, team.id), { traces: 300, differences: [] });
  } finally {
    db.close();
    await store.close();
    folder.remove();
  }
});
