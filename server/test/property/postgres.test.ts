import { test } from 'node:test';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { usePostgres } from '../support/postgres.ts';
import { runsOf } from '../support/runs.ts';
import { manualClock } from '../support/service.ts';
import { compareHistories } from './store-histories.ts';
import { compareTallies } from './tally-histories.ts';

const postgres = usePostgres();

const models = runsOf(40);

test(`the PostgreSQL store answers as the plain model does, and verify is clean, for ${models} random histories`, async (t) => {
  const clock = manualClock(0);
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ url, clock: clock.source, role: 'server' });
  try {
    t.diagnostic(JSON.stringify(await compareHistories(store, clock, models)));
  } finally {
    await store.close();
  }
});

const histories = runsOf(40);

test(`the PostgreSQL store answers random questions as a plain array does, whatever is rolled up, for ${histories} random histories`, async (t) => {
  const url = await postgres.createDatabase();
  const clock = { kind: 'system' } as const;
  const store = await openPostgresStore({ url, clock, role: 'server', rolling: 'manual' });
  try {
    t.diagnostic(JSON.stringify(await compareTallies(store, histories)));
  } finally {
    await store.close();
  }
});
