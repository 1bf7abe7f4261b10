import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { openSqliteStore } from '../../src/store/sqlite/open-sqlite-store.ts';
import { runsOf } from '../support/runs.ts';
import { manualClock, temporaryFolder } from '../support/service.ts';
import { compareHistories } from './store-histories.ts';
import { compareTallies } from './tally-histories.ts';

const models = runsOf(60);

test(`the SQLite store answers as the plain model does, and verify is clean, for ${models} random histories`, async (t) => {
  const folder = temporaryFolder();
  const clock = manualClock(0);
  const path = join(folder.path, 'property.db');
  const store = await openSqliteStore({ path, clock: clock.source, role: 'server' });
  try {
    t.diagnostic(JSON.stringify(await compareHistories(store, clock, models)));
  } finally {
    await store.close();
    folder.remove();
  }
});

const histories = runsOf(80);

test(`the SQLite store answers random questions as a plain array does, whatever is rolled up, for ${histories} random histories`, async (t) => {
  const folder = temporaryFolder();
  const clock = manualClock(0);
  const path = join(folder.path, 'tallies.db');
  const options = { path, clock: clock.source, role: 'server', rolling: 'manual' } as const;
  const store = await openSqliteStore(options);
  try {
    t.diagnostic(JSON.stringify(await compareTallies(store, histories)));
    assert.deepEqual(await store.checkStorage(), []);
  } finally {
    await store.close();
    folder.remove();
  }
});
