import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { openPostgresStore } from '../../src/store/postgres/open-postgres-store.ts';
import { openRoller } from '../../src/store/postgres/roller-client.ts';
import { limits } from '../../src/limits.ts';
import type { RollFailure, Store, StoreOptions } from '../../src/store/store.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { eventually } from '../support/eventually.ts';
import { usePostgres } from '../support/postgres.ts';

const postgres = usePostgres();

const openOn = (url: string, more: Partial<StoreOptions> = {}): Promise<Store> =>
  openPostgresStore({ clock: { kind: 'system' }, role: 'server', ...more, url });

async function append(store: Store, teamId: string, count: number): Promise<void> {
  const drafts = Array.from({ length: count }, (_, i) => draftTrace({ model: `m${i % 50}` }));
  const [outcome] = await store.append([{ teamId, drafts }]);
  assert.equal(outcome?.kind, 'stored', JSON.stringify(outcome));
}

test('a tail that a server has left is rolled up by another one that never pauses writing', async () => {
  const url = await postgres.createDatabase();
  const first = await openOn(url, { rolling: 'manual' });
  const { team } = await first.ensureTeam('left', 1);
  const { team: busy } = await first.ensureTeam('busy', 1);
  await append(first, team.id, 500);
  await first.close();
  await using closing = new AsyncDisposableStack();
  const second = await openOn(url, { rollTailRows: 400 });
  closing.defer(() => second.close());
  await eventually(
    'the rolls of the tail',
    120_000,
    async () => {
      await append(second, busy.id, 1);
      const { seq } = await second.marks(team.id);
      return seq === 500;
    },
    1,
  );
  assert.deepEqual(await verifyTeam(second, team.id), { traces: 500, differences: [] });
});

test('a rolling thread of a server that ends starts again without a write', async () => {
  const failures: RollFailure[] = [];
  const roller = openRoller(
    {
      // The thread ends when it reads this URL.
      url: 'no URL: application_name',
      role: 'server',
      begin: ['begin'],
      naming: { isOn: true },
      rowsMin: limits.rollTailRows,
      isReporting: false,
    },
    (failure) => void failures.push(failure),
    () => {},
  );
  await using closing = new AsyncDisposableStack();
  closing.defer(() => roller.close());
  roller.written([{ teamId: 'team', fromSeq: 0, lastSeq: 1 }]);
  await eventually('the second start', 120_000, () => failures.length >= 2);
  assert.equal(failures[0]?.teamId, 'every team');
});

test('a roll or rebuild that takes too long is repeated with fewer traces', async () => {
  const url = await postgres.createDatabase();
  await using closing = new AsyncDisposableStack();
  const store = await openOn(url, { rolling: 'manual' });
  closing.defer(() => store.close());
  const { team } = await store.ensureTeam('t', 1);
  await append(store, team.id, 500);
  // As if PostgreSQL could roll up only 150 traces within the time limit.
  await postgres.sql(
    url,
    `create function cancel() returns trigger language plpgsql as
     $$ begin raise exception 'too slow' using errcode = 'query_canceled'; end $$`,
  );
  await postgres.sql(
    url,
    `create trigger slow before update on roll_marks for each row
     when (new.seq - old.seq > 150) execute function cancel()`,
  );
  for (let rolled = 0; rolled < 500;) {
    const rows = await store.roll(team.id, 500);
    assert.ok(rows > 0 && rows <= 150, `${rows} traces`);
    rolled += rows;
  }
  await store.rebuild(team.id, 'Asia/Tokyo');
  const { timeZone, seq } = await store.marks(team.id);
  assert.deepEqual([timeZone, seq], ['Asia/Tokyo', 500]);
  assert.deepEqual(await verifyTeam(store, team.id), { traces: 500, differences: [] });
});
